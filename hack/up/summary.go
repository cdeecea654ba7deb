package main

import (
	"fmt"
	"io"
	"time"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// writeEnv writes the variables for scripts.
func (p *platform) writeEnv(path string) error {
	first, second := p.sample.Users[0], p.sample.Users[1]
	return devenv.WriteEnv(path, [][2]string{
		{"MNEMO_URL", p.product.url()},
		{"MNEMO_TOKEN", first.Token},
		{"MNEMO_SIGN_IN", p.sample.SignInName()},
		{"MNEMO_PASSWORD", first.Password},
		{"MNEMO_TOKEN_2", second.Token},
		{"MNEMO_METRICS_URL", "http://" + p.product.address("metrics") + "/metrics"},
		{"MNEMO_OPERATOR_METRICS_URL", "http://" + p.product.address("operator metrics") + "/metrics"},
		{"MNEMO_NAMESPACE", p.sample.Namespace},
		{"KUBECONFIG", p.kube.Kubeconfig},
		{"KUBECTL", p.kube.Kubectl},
		{"DATABASE_URL", p.product.appURL},
		{"DATABASE_OWNER_URL", p.product.ownerURL},
		{"MILVUS_ADDRESS", p.milvus.Addr},
		{"MILVUS_USERNAME", p.milvus.User},
		{"MILVUS_PASSWORD", p.milvus.Password},
		{"MNEMO_MODEL_DIR", p.model},
		{"MNEMO_ONNXRUNTIME", p.onnxruntime},
	})
}

// printSummary prints addresses, credentials and example commands.
func (p *platform) printSummary(w io.Writer, took time.Duration, signInLink string) {
	url, user := p.product.url(), p.sample.Users[0]
	auth := `-H "Authorization: Bearer ` + user.Token + `"`
	_, _ = fmt.Fprintf(w, `
Mnemo is up after %[1]s.

  dashboard   %[14]s   in a browser: signs in %[4]s once, within 10 minutes
              (after that, sign in at %[2]s as %[12]s with password %[13]s, or run make sign-in)
  API         %[2]s   (reference: %[2]s/docs)
  token       %[3]s   (%[4]s of Tenant %[5]s)
  kubectl     export KUBECONFIG=%[6]s
  for scripts . %[7]s/%[8]s
  logs        %[7]s/logs

Try, in another terminal: store a memory, find it by other words, see the Tenants.

  curl -s %[2]s/api/memory %[9]s -H "Content-Type: application/json" -d '{"text":"%[10]s My sister Ana moved to Lisbon."}'; echo

  curl -s -G %[2]s/api/v2/memory %[9]s --data-urlencode "query=which city does my sibling live in?"; echo

  KUBECONFIG=%[6]s %[11]s get tenants --all-namespaces

Ctrl-C stops everything; the data stays, and the next start is quick.
`, took.Round(100*time.Millisecond), url, user.Token, user.Name, p.sample.Name, p.kube.Kubeconfig, p.dir, devenv.EnvFile,
		auth, time.Now().Format(time.DateOnly), p.kube.Kubectl, p.sample.SignInName(), user.Password, signInLink)
	if p.milvus.Open() {
		_, _ = fmt.Fprint(w, `
Note: Milvus' internal ports require no password and listen on every address of this machine; only root can isolate them.
On an untrusted network run this as root or behind a firewall.
`)
	}
}
