package devenv

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"os"
)

// Authority signs the certificates of servers that accept only TLS connections.
type Authority struct {
	keys PKI
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority creates an authority with a new key in dir.
func NewAuthority(dir string) (*Authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create key directory: %w", err)
	}
	a := &Authority{keys: PKI{dir}}
	var err error
	if a.cert, a.key, err = a.keys.IssueCA("mnemo-stores-ca"); err != nil {
		return nil, fmt.Errorf("create authority: %w", err)
	}
	return a, nil
}

// File returns the path of the authority's certificate, a PEM file.
func (a *Authority) File() string { return a.keys.Path("ca.crt") }

// Client returns the TLS configuration of clients that trust the authority.
func (a *Authority) Client() (*tls.Config, error) {
	data, err := os.ReadFile(a.File())
	if err != nil {
		return nil, fmt.Errorf("read authority: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(data)
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}, nil
}

// Server issues the certificate of a server on this machine. It is valid for
// 127.0.0.1 and for the machine's address on the link to each possible node,
// which pods use. Server returns the paths of the certificate and the key, both
// in PEM.
func (a *Authority) Server(name string) (cert, key string, err error) {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	for i := range MaxNodes {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(NodeHost(i)))
	}
	if _, err := a.keys.Issue(name, template, a.cert, a.key); err != nil {
		return "", "", err
	}
	return a.keys.Path(name + ".crt"), a.keys.Path(name + ".key"), nil
}
