package main

import (
	"fmt"
	"io"
	"time"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// writeEnv writes the variables for scripts.
func (c *cluster) writeEnv() error {
	first, second := c.sample.Users[0], c.sample.Users[1]
	return devenv.WriteEnv(c.envFile(), [][2]string{
		{"MNEMO_URL", c.release.url},
		{"MNEMO_TOKEN", first.Token},
		{"MNEMO_SIGN_IN", c.sample.SignInName()},
		{"MNEMO_PASSWORD", first.Password},
		{"MNEMO_TOKEN_2", second.Token},
		{"MNEMO_METRICS_URL", c.release.metrics + "/metrics"},
		{"MNEMO_NAMESPACE", c.sample.Namespace},
		{"MNEMO_RELEASE_NAMESPACE", namespace},
		{"KUBECONFIG", c.node.Kube.Kubeconfig},
		{"KUBECTL", c.node.Kube.Kubectl},
	})
}

// printSummary tells a person what runs and what to try.
func (c *cluster) printSummary(w io.Writer, took time.Duration) {
	url, user := c.release.url, c.sample.Users[0]
	auth := `-H "Authorization: Bearer ` + user.Token + `"`
	_, _ = fmt.Fprintf(w, `
Mnemo is up on a dedicated cluster after %s: the release %[14]s in namespace %[15]s.

  dashboard   %[2]s   in a browser: sign in as %[12]s with password %[13]s
  API         %[2]s   (reference: %[2]s/docs)
  token       %[3]s   (%[4]s of Tenant %[5]s)
  kubectl     export KUBECONFIG=%[6]s
  for scripts . %[8]s
  logs        %[7]s/logs

Try: store a memory, find it by other words, see the pods.

  curl -s %[2]s/api/memory %[9]s -H "Content-Type: application/json" -d '{"text":"%[10]s My sister Ana moved to Lisbon."}'; echo

  curl -s -G %[2]s/api/v2/memory %[9]s --data-urlencode "query=which city does my sibling live in?"; echo

  KUBECONFIG=%[6]s %[11]s get pods --all-namespaces

make cluster-down deletes the cluster and its data.
`, took.Round(100*time.Millisecond), url, user.Token, user.Name, c.sample.Name, c.node.Kube.Kubeconfig, c.dir, c.envFile(),
		auth, time.Now().Format(time.DateOnly), c.node.Kube.Kubectl, c.sample.SignInName(), user.Password, releaseName, namespace)
}
