package kube

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"maps"
	"net"
	"os"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// NodeName is the name of the only node of a cluster.
const NodeName = "mnemo"

// PKI is the directory with the control plane's keys and certificates. It is
// created once per data directory, because issued service account tokens are
// signed with its key.
type PKI struct{ devenv.PKI }

// kubeClients maps a client certificate's file to its user and group.
var kubeClients = map[string]pkix.Name{
	"admin":       {CommonName: "admin", Organization: []string{"system:masters"}},
	"controller":  {CommonName: "system:kube-controller-manager"},
	"etcd-client": {CommonName: "etcd-client"},
}

// nodeClients are the additional clients of a cluster with a node.
var nodeClients = map[string]pkix.Name{
	"scheduler": {CommonName: "system:kube-scheduler"},
	"proxy":     {CommonName: "system:kube-proxy"},
	"node":      {CommonName: "system:node:" + NodeName, Organization: []string{"system:nodes"}},
}

// clients returns all clients of a site.
func (s Site) clients() map[string]pkix.Name {
	all := maps.Clone(kubeClients)
	if s.hasNode() {
		maps.Copy(all, nodeClients)
	}
	return all
}

// ensureKubePKI creates the keys and certificates if they do not exist.
func ensureKubePKI(dir string, site Site) (PKI, error) {
	keys := PKI{devenv.PKI{Dir: dir}}
	if devenv.IsDir(dir) {
		return keys, nil
	}
	tmp := PKI{devenv.PKI{Dir: dir + ".partial"}}
	if err := os.RemoveAll(tmp.Dir); err != nil {
		return keys, fmt.Errorf("remove incomplete keys: %w", err)
	}
	if err := os.MkdirAll(tmp.Dir, 0o700); err != nil {
		return keys, fmt.Errorf("create key directory: %w", err)
	}
	if err := tmp.create(site); err != nil {
		return keys, fmt.Errorf("create keys: %w", err)
	}
	if err := os.Rename(tmp.Dir, dir); err != nil {
		return keys, fmt.Errorf("finish keys: %w", err)
	}
	return keys, nil
}

func (p PKI) create(site Site) error {
	ca, caKey, err := p.IssueCA("mnemo-local-ca")
	if err != nil {
		return err
	}
	server := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(site.Address), net.ParseIP(site.APIService)},
	}
	if _, err := p.Issue("server", server, ca, caKey); err != nil {
		return err
	}
	for name, subject := range site.clients() {
		client := &x509.Certificate{
			Subject:     subject,
			KeyUsage:    x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}
		if name == "node" {
			// The kubelet also serves requests of the API server.
			client.ExtKeyUsage = append(client.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
			client.IPAddresses = []net.IP{net.ParseIP(site.Node)}
		}
		if _, err := p.Issue(name, client, ca, caKey); err != nil {
			return err
		}
	}
	// Signs service account tokens; its certificate is not used.
	_, err = p.Issue("service-account", &x509.Certificate{Subject: pkix.Name{CommonName: "service-account"}}, ca, caKey)
	return err
}

// writeKubeconfig writes a kubeconfig for a client. Only the owner can read it,
// because it contains the private key. as, if not empty, is the user to
// impersonate.
func (p PKI) writeKubeconfig(path, client, server, as string) error {
	var encoded [3]string
	for i, name := range []string{"ca.crt", client + ".crt", client + ".key"} {
		data, err := os.ReadFile(p.Path(name))
		if err != nil {
			return fmt.Errorf("read key: %w", err)
		}
		encoded[i] = base64.StdEncoding.EncodeToString(data)
	}
	if as != "" {
		as = "\n    as: " + as
	}
	content := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: mnemo
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: %[5]s
  user:
    client-certificate-data: %[3]s
    client-key-data: %[4]s%[6]s
contexts:
- name: mnemo
  context:
    cluster: mnemo
    user: %[5]s
current-context: mnemo
`, server, encoded[0], encoded[1], encoded[2], client, as)
	if err := devenv.WriteFile(path, []byte(content), 0o600); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}
