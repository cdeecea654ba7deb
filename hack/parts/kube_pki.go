package parts

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// kubePKI is the directory with the control plane's keys and certificates. It
// is made once for a data directory, since service account tokens in etcd are
// signed with its key.
type kubePKI struct{ dir string }

func (p kubePKI) path(name string) string { return filepath.Join(p.dir, name) }

// kubeClients maps a client certificate's file to its user and group.
var kubeClients = map[string]pkix.Name{
	"admin":       {CommonName: "admin", Organization: []string{"system:masters"}},
	"controller":  {CommonName: "system:kube-controller-manager"},
	"etcd-client": {CommonName: "etcd-client"},
}

// nodeClients are the further ones of a cluster with a node.
var nodeClients = map[string]pkix.Name{
	"scheduler": {CommonName: "system:kube-scheduler"},
	"proxy":     {CommonName: "system:kube-proxy"},
	"node":      {CommonName: "system:node:" + nodeName, Organization: []string{"system:nodes"}},
}

// clients are all of a site.
func (s kubeSite) clients() map[string]pkix.Name {
	all := maps.Clone(kubeClients)
	if s.hasNode() {
		maps.Copy(all, nodeClients)
	}
	return all
}

// ensureKubePKI makes the keys and certificates unless they are there.
func ensureKubePKI(dir string, site kubeSite) (kubePKI, error) {
	pki := kubePKI{dir: dir}
	if isDir(dir) {
		return pki, nil
	}
	tmp := kubePKI{dir: dir + ".partial"}
	if err := os.RemoveAll(tmp.dir); err != nil {
		return pki, fmt.Errorf("remove half-made keys: %w", err)
	}
	if err := os.MkdirAll(tmp.dir, 0o700); err != nil {
		return pki, fmt.Errorf("create key directory: %w", err)
	}
	if err := tmp.make(site); err != nil {
		return pki, fmt.Errorf("make keys: %w", err)
	}
	if err := os.Rename(tmp.dir, dir); err != nil {
		return pki, fmt.Errorf("finish keys: %w", err)
	}
	return pki, nil
}

func (p kubePKI) make(site kubeSite) error {
	ca := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "mnemo-local-ca"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	caKey, err := p.issue("ca", ca, nil, nil)
	if err != nil {
		return err
	}
	server := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(site.address), net.ParseIP(site.apiService)},
	}
	if _, err := p.issue("server", server, ca, caKey); err != nil {
		return err
	}
	for name, subject := range site.clients() {
		client := &x509.Certificate{
			Subject:     subject,
			KeyUsage:    x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}
		if name == "node" {
			// The kubelet is a server too, for what the API server asks it.
			client.ExtKeyUsage = append(client.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
			client.IPAddresses = []net.IP{net.ParseIP(site.node)}
		}
		if _, err := p.issue(name, client, ca, caKey); err != nil {
			return err
		}
	}
	// Signs service account tokens; its certificate is not used.
	_, err = p.issue("service-account", &x509.Certificate{Subject: pkix.Name{CommonName: "service-account"}}, ca, caKey)
	return err
}

// issue writes name.key and name.crt, signed by ca or else by itself.
func (p kubePKI) issue(name string, cert, ca *x509.Certificate, caKey *ecdsa.PrivateKey) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	if ca == nil {
		ca, caKey = cert, key
	}
	if cert.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, fmt.Errorf("serial number: %w", err)
	}
	// An hour back, for clocks that are set while a machine starts.
	cert.NotBefore, cert.NotAfter = time.Now().Add(-time.Hour), time.Now().AddDate(10, 0, 0)
	der, err := x509.CreateCertificate(rand.Reader, cert, ca, key.Public(), caKey)
	if err != nil {
		return nil, fmt.Errorf("sign %s: %w", name, err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	if err := writePEM(p.path(name+".crt"), "CERTIFICATE", der); err != nil {
		return nil, err
	}
	return key, writePEM(p.path(name+".key"), "EC PRIVATE KEY", keyDER)
}

func writePEM(path, kind string, der []byte) error {
	data := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("write key: %w", err)
	}
	return nil
}

// writeKubeconfig writes a kubeconfig for one of kubeClients, readable by its
// owner only, since it holds the private key. A client that may, as the
// administrator, can act as another user.
func (p kubePKI) writeKubeconfig(path, client, server, as string) error {
	var encoded [3]string
	for i, name := range []string{"ca.crt", client + ".crt", client + ".key"} {
		data, err := os.ReadFile(p.path(name))
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
	if err := writeFile(path, []byte(content), 0o600); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}
