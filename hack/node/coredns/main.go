// Command coredns is CoreDNS with the plugins a cluster's DNS needs: with all
// of them it takes three times as long to build.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

// The order in which plugins see a request, that of CoreDNS itself.
func init() {
	dnsserver.Directives = []string{"health", "ready", "errors", "cache", "kubernetes"}
}

func main() { coremain.Run() }
