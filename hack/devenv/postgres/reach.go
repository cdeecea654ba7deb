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

// nobody is the unprivileged user that runs PostgreSQL if this program runs as
// root, because PostgreSQL refuses to run as root. 65534 is the overflow user of
// Linux; it needs no entry in /etc/passwd.
const nobody = 65534

// postgresUser returns the user that runs PostgreSQL; nil is the current user.
func postgresUser() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	return &syscall.Credential{Uid: nobody, Gid: nobody}
}

// reachable reports whether every user may traverse all existing directories of
// path; /root usually forbids it.
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

// accessiblePath returns path or, if PostgreSQL's user cannot access it, a
// directory in /var/<kind>/mnemo that is named after path.
func accessiblePath(path, kind string) string {
	if postgresUser() == nil || reachable(filepath.Dir(path)) {
		return path
	}
	sum := sha256.Sum256([]byte(path))
	return filepath.Join("/var/"+kind, "mnemo", filepath.Base(path)+"-"+hex.EncodeToString(sum[:6]))
}

// makePrivate creates a directory that is owned by PostgreSQL's user.
func makePrivate(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("create directory: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		return fmt.Errorf("create directory: %w", err)
	}
	return changeOwner(dir)
}

// writePrivate writes a file that is owned by PostgreSQL's user.
func writePrivate(path, content string) error {
	if err := devenv.WriteFile(path, []byte(content), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return changeOwner(path)
}

// changeOwner makes PostgreSQL's user the owner of path.
func changeOwner(path string) error {
	user := postgresUser()
	if user == nil {
		return nil
	}
	if err := os.Chown(path, int(user.Uid), int(user.Gid)); err != nil {
		return fmt.Errorf("change owner of %s to PostgreSQL's user: %w", path, err)
	}
	return nil
}
