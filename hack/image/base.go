package image

import (
	"bytes"
	"encoding/pem"
	"os"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// base returns the layer of a distroless image for static programs: the public
// certificate authorities, user names, and a directory for temporary files. The
// authorities are those that go.sum pins, not those of this machine.
func base() Layer {
	const (
		passwd = "root:x:0:0:root:/root:/sbin/nologin\n" +
			"nobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n" +
			"nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"
		group = "root:x:0:\nnobody:x:65534:\nnonroot:x:65532:\n"
	)
	dir := os.ModeDir | 0o755
	return Layer{
		{Path: "/etc", Mode: dir},
		{Path: "/etc/passwd", Mode: 0o644, Content: []byte(passwd)},
		{Path: "/etc/group", Mode: 0o644, Content: []byte(group)},
		{Path: "/etc/nsswitch.conf", Mode: 0o644, Content: []byte("hosts: files dns\n")},
		{Path: "/etc/ssl", Mode: dir},
		{Path: "/etc/ssl/certs", Mode: dir},
		{Path: "/etc/ssl/certs/ca-certificates.crt", Mode: 0o644, Content: authorities()},
		{Path: "/home", Mode: dir},
		{Path: "/tmp", Mode: os.ModeDir | os.ModeSticky | 0o777},
	}
}

// authorities returns the root certificates that browsers trust, except those with
// constraints that a file of certificates cannot express.
func authorities() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // writing to a buffer cannot fail
		}
	}
	return b.Bytes()
}
