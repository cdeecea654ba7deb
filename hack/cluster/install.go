package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/devenv/kube"
)

const (
	namespace   = "mnemo-system"
	releaseName = "mnemo"
)

// release is the installed Helm release.
type release struct {
	settings devenv.Settings
	// url and metrics are the addresses of its Services.
	url, metrics string
}

// helmArgs returns the arguments of every install and upgrade of the chart.
func (c *cluster) helmArgs() []string {
	return []string{
		"--namespace", namespace, "--values", c.file("values.yaml"),
		"--set", "image.tag=" + c.tag,
		"--set", "postgres.host=" + c.node.HostAddress, "--set", "postgres.port=" + strconv.Itoa(postgresPort),
		"--set", fmt.Sprintf("milvus.address=%s:%d", c.node.HostAddress, milvusPort),
	}
}

// install installs the chart and waits until all its pods are ready.
func (c *cluster) install(ctx context.Context) (err error) {
	done := c.progress.Step("Mnemo", "helm install, until all pods are ready")
	defer func() { done(err) }()
	args := append([]string{"helm", "install", releaseName, "charts/mnemo", "--wait", "--timeout", "5m"}, c.helmArgs()...)
	cmd := exec.CommandContext(ctx, c.helm, args...)
	cmd.Dir = c.root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.node.Kube.Kubeconfig)
	if out, err := cmd.CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("helm install: %w\n%s", err, strings.TrimSpace(string(out))), c.explain(ctx))
	}
	return c.findServices(ctx)
}

// explain returns an error with the pods and warning events of a release that did
// not become ready.
func (c *cluster) explain(ctx context.Context) error {
	pods, err := c.kubectl(ctx, "get", "pods", "--namespace", namespace)
	if err != nil {
		return err
	}
	events, err := c.kubectl(ctx, "get", "events", "--namespace", namespace, "--field-selector", "type=Warning",
		"--output", `jsonpath={range .items[*]}{.involvedObject.name}: {.message}{"\n"}{end}`)
	if err != nil {
		return err
	}
	return fmt.Errorf("pods and events:\n%s%s", pods, events)
}

// findServices reads the addresses of the API's Service and of an additional Service
// for its metrics, and waits until both answer. The chart's metrics Service is headless because Prometheus scrapes
// each pod.
func (c *cluster) findServices(ctx context.Context) error {
	if _, err := c.kubectl(ctx, "apply", "--server-side", "--filename", c.file("metrics.yaml")); err != nil {
		return err
	}
	for name, to := range map[string]*string{releaseName: &c.release.url, "mnemo-metrics": &c.release.metrics} {
		address, err := c.kubectl(ctx, "get", "service", name, "--namespace", namespace, "--output", "jsonpath={.spec.clusterIP}:{.spec.ports[0].port}")
		if err != nil {
			return err
		}
		*to = "http://" + strings.TrimSuffix(string(address), ":80")
	}
	return errors.Join(awaitAnswer(ctx, c.release.url+"/readyz"), awaitAnswer(ctx, c.release.metrics+"/metrics"))
}

// awaitAnswer waits until a Service answers. A connection opened before kube-proxy has
// the rules of a new Service never succeeds, because connection tracking does not apply
// later rules to it. Each attempt therefore opens a new connection, for at most a second.
func awaitAnswer(ctx context.Context, url string) error {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		last = kube.Answers(ctx, client, url)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the Service: %w", errors.Join(err, last))
	}
	return nil
}
