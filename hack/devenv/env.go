package devenv

import (
	"fmt"
	"os"
	"strings"
)

// WriteEnv writes variables, each a name and a value, to a file for a shell to
// source. Only the owner can read it. The file is renamed into place, so a program
// that waits for it never reads an incomplete one.
func WriteEnv(path string, variables [][2]string) error {
	var b strings.Builder
	for _, v := range variables {
		fmt.Fprintf(&b, "export %s=%s\n", v[0], quote(v[1]))
	}
	if err := os.WriteFile(path+".partial", []byte(b.String()), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(path+".partial", path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// quote quotes s as one word for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
