package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// nobody is the unprivileged user under which root runs PostgreSQL, which
// refuses to run as root. 65534 is the overflow user of every Linux; it needs no
// entry in /etc/passwd.
const nobody = 65534

// postgresUser returns the user to run PostgreSQL as: nil, ourselves, unless we
// are root.
func postgresUser() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	return &syscall.Credential{Uid: nobody, Gid: nobody}
}

// reachable tells whether every user may pass through all directories of path
// that exist; /root usually forbids it.
func reachable(path string) bool {
	for {
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o001 == 0 {
			return false
		}
		parent := filepath.Dir(path)
		if parent == path {
			return true
		}
		path = parent
	}
}

// place returns where PostgreSQL keeps something that belongs at path:
// there, or, when the user it runs as cannot reach path, in a directory of
// /var/<kind>/mnemo named after path.
func place(path, kind string) string {
	if postgresUser() == nil || reachable(filepath.Dir(path)) {
		return path
	}
	sum := sha256.Sum256([]byte(path))
	return filepath.Join("/var/"+kind, "mnemo", filepath.Base(path)+"-"+hex.EncodeToString(sum[:6]))
}

// makePrivate creates a directory that belongs to the user PostgreSQL runs as.
func makePrivate(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("create directory: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		return fmt.Errorf("create directory: %w", err)
	}
	return give(dir)
}

// writePrivate writes a file for the user PostgreSQL runs as.
func writePrivate(path, content string) error {
	if err := devenv.WriteFile(path, []byte(content), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return give(path)
}

// give makes the user PostgreSQL runs as the owner of a path.
func give(path string) error {
	user := postgresUser()
	if user == nil {
		return nil
	}
	if err := os.Chown(path, int(user.Uid), int(user.Gid)); err != nil {
		return fmt.Errorf("give %s to the user PostgreSQL runs as: %w", path, err)
	}
	return nil
}
