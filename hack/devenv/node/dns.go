package node

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
)

//go:embed dns.yaml
var dnsManifest string

// startDNS installs CoreDNS and returns when it is ready, which shows that the
// node runs pods.
func (n *Node) startDNS(ctx context.Context) error {
	manifest := strings.NewReplacer("DNS_IMAGE", dnsImage, "DNS_ADDRESS", n.slot.dns).Replace(dnsManifest)
	if _, err := n.Kubectl(ctx, []byte(manifest), "apply", "--server-side", "--filename", "-"); err != nil {
		return err
	}
	if _, err := n.Kubectl(ctx, nil, "rollout", "status", "--namespace", "kube-system", "deployment/coredns", "--timeout=90s"); err != nil {
		events, _ := n.Kubectl(ctx, nil, "get", "events", "--namespace", "kube-system", "--output", "jsonpath={range .items[*]}{.message}{\"\\n\"}{end}")
		return fmt.Errorf("the first pod does not start, see logs/kubelet.log and logs/containerd.log in %s: %w\n%s", n.options.Dir, err, events)
	}
	return nil
}
