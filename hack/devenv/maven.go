package devenv

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Jar is a Maven artifact.
type Jar struct {
	Group, Name, Version string
	SHA256               string // of the .jar file
}

// Fetch downloads the artifact into dir and returns the file's path. It uses Maven,
// which is configured for the machine's proxies and repositories.
func (j Jar) Fetch(ctx context.Context, dir string) (string, error) {
	maven, err := exec.LookPath("mvn")
	if err != nil {
		return "", errors.New("mvn is missing: install Maven (Debian: apt-get install maven)")
	}
	cmd := exec.CommandContext(ctx, maven, "--batch-mode", "--quiet", "dependency:copy", "-Dartifact="+j.Group+":"+j.Name+":"+j.Version,
		"-DoutputDirectory="+dir)
	cmd.Dir = dir // without a pom.xml
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("mvn could not download %s %s (is the Maven repository reachable?): %w\n%s",
			j.Name, j.Version, err, strings.TrimSpace(string(out)))
	}
	path := filepath.Join(dir, j.Name+"-"+j.Version+".jar")
	return path, j.verify(path)
}

func (j Jar) verify(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open artifact: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return fmt.Errorf("read artifact: %w", err)
	}
	if sum := hex.EncodeToString(h.Sum(nil)); sum != j.SHA256 {
		return fmt.Errorf("%s has SHA-256 %s, want %s", filepath.Base(path), sum, j.SHA256)
	}
	return nil
}
