package kube

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
)

func TestEnsureKubePKI(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "pki")
	pki, err := ensureKubePKI(dir, noNodes)
	if err != nil {
		t.Fatal(err)
	}
	ca := readCert(t, pki.Path("ca.crt"))
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	for name, usage := range map[string]x509.ExtKeyUsage{
		"server": x509.ExtKeyUsageServerAuth, "admin": x509.ExtKeyUsageClientAuth, "controller": x509.ExtKeyUsageClientAuth,
		"etcd-client": x509.ExtKeyUsageClientAuth,
	} {
		options := x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}}
		if _, err := readCert(t, pki.Path(name+".crt")).Verify(options); err != nil {
			t.Errorf("verify %s: %v", name, err)
		}
	}
	info, err := os.Stat(pki.Path("admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode of admin.key %v, want 0600", info.Mode())
	}
	if _, err := ensureKubePKI(dir, noNodes); err != nil {
		t.Fatal(err)
	}
	if !readCert(t, pki.Path("ca.crt")).Equal(ca) {
		t.Error("the second call created new keys, which invalidates all issued tokens")
	}
}

func readCert(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
