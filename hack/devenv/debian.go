package devenv

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ErrNoPackages is returned on a distribution without Debian packages.
var ErrNoPackages = errors.New("this machine has no apt-get")

// versionsTTL is how long the package versions are cached.
const versionsTTL = 24 * time.Hour

// EnsureDebian returns the directory of an entry that contains packages of the
// distribution, unpacked and not installed. The release and the versions of the
// packages are part of the key, so each version has its own entry. The versions
// are looked up once a day. If the lookup fails, for example without a network,
// EnsureDebian returns the newest existing entry.
func EnsureDebian(ctx context.Context, cache *Cache, e Entry, packages ...string) (string, error) {
	release, err := DebianRelease()
	if err != nil {
		return "", err
	}
	e.Key += "-" + release + "-"
	return apt{dir: filepath.Join(cache.Root, "apt-"+release)}.ensure(ctx, cache, e, packages)
}

// ensure returns the directory of an entry, to whose key it adds the versions.
func (a apt) ensure(ctx context.Context, cache *Cache, e Entry, packages []string) (string, error) {
	versions, err := a.resolve(ctx, cache, e.Key, packages)
	if err != nil {
		if dir := newestEntry(cache.Root, e.Key); dir != "" {
			return dir, nil
		}
		return "", fmt.Errorf("%s: %w", e.Title, err)
	}
	fill := e.Fill
	e.Key += versions
	e.Fill = func(ctx context.Context, dir string) error {
		if err := a.unpack(ctx, dir, packages); err != nil {
			return err
		}
		return fill(ctx, dir)
	}
	return cache.Ensure(ctx, e)
}

// newestEntry returns the directory of the newest entry whose key has the prefix,
// or "" if there is none.
func newestEntry(root, prefix string) (newest string) {
	found, err := filepath.Glob(filepath.Join(root, prefix+"*"))
	if err != nil {
		return ""
	}
	var modified time.Time
	for _, dir := range found {
		if info, err := os.Stat(dir); err == nil && info.IsDir() && !strings.HasSuffix(dir, ".partial") && info.ModTime().After(modified) {
			newest, modified = dir, info.ModTime()
		}
	}
	return newest
}

// apt downloads packages of the distribution. It has its own package lists in
// dir, so it works for every user and does not modify the system.
type apt struct {
	dir string
	// foreign are the options for a different system than this machine: packages are downloaded with
	// all their dependencies, as none is installed.
	foreign []string
}

// request returns the arguments of apt-get for downloading packages.
func (a apt) request(packages []string, options ...string) []string {
	if a.foreign == nil {
		return slices.Concat([]string{"download"}, options, packages)
	}
	return slices.Concat([]string{"install", "--yes", "--no-install-recommends"}, options, packages)
}

// resolve returns the versions of packages; they are at most a day old.
func (a apt) resolve(ctx context.Context, cache *Cache, key string, packages []string) (string, error) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return "", ErrNoPackages
	}
	for _, sub := range []string{filepath.Join(a.dir, "state/lists/partial"), filepath.Join(a.dir, "cache/archives/partial"), filepath.Join(cache.Root, "locks")} {
		if err := os.MkdirAll(sub, 0o755); err != nil {
			return "", fmt.Errorf("create the cache (set MNEMO_CACHE to a directory you can write): %w", err)
		}
	}
	unlock, err := cache.Lock(ctx, Entry{Key: "apt", Title: "versions of packages"})
	if err != nil {
		return "", err
	}
	defer unlock()
	file := filepath.Join(a.dir, key+"versions")
	if info, err := os.Stat(file); err == nil && time.Since(info.ModTime()) < versionsTTL {
		cached, err := os.ReadFile(file)
		return string(cached), err
	}
	// Without --error-on, a list that cannot be fetched is only a warning.
	if _, err := a.get(ctx, a.dir, "update", "--error-on=any"); err != nil {
		return "", err
	}
	versions, err := a.versions(ctx, packages)
	if err != nil {
		return "", err
	}
	return versions, WriteFile(file, []byte(versions), 0o644)
}

// versions identifies the package files: by the version of a single package, or
// by a digest of several file names.
func (a apt) versions(ctx context.Context, packages []string) (string, error) {
	out, err := a.get(ctx, a.dir, a.request(packages, "--print-uris")...)
	if err != nil {
		return "", err
	}
	var files []string
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasSuffix(fields[1], ".deb") {
			files = append(files, fields[1]) // name_version_architecture.deb
		}
	}
	if len(files) < len(packages) || a.foreign == nil && len(files) > len(packages) {
		return "", fmt.Errorf("apt-get found %d of the packages %q:\n%s", len(files), packages, out)
	}
	if len(files) == 1 {
		return strings.Split(files[0], "_")[1], nil
	}
	slices.Sort(files)
	sum := sha256.Sum256([]byte(strings.Join(files, " ")))
	return hex.EncodeToString(sum[:6]), nil
}

// unpack downloads packages and unpacks them into dir.
func (a apt) unpack(ctx context.Context, dir string, packages []string) error {
	archives := filepath.Join(dir, "archives")
	if err := os.MkdirAll(filepath.Join(archives, "partial"), 0o755); err != nil {
		return fmt.Errorf("create directory: %w", err)
	}
	if _, err := a.get(ctx, archives, a.request(packages, "--download-only", "-o", "Dir::Cache::Archives="+archives)...); err != nil {
		return err
	}
	found, err := filepath.Glob(filepath.Join(archives, "*.deb"))
	if err != nil || len(found) < len(packages) {
		return fmt.Errorf("apt-get downloaded %d packages instead of %d", len(found), len(packages))
	}
	var list strings.Builder
	for _, file := range found {
		if _, err := RunIn(ctx, dir, "dpkg-deb", "-x", file, dir); err != nil {
			return err
		}
		list.WriteString(filepath.Base(file) + "\n")
	}
	if err := WriteFile(filepath.Join(dir, packagesFile), []byte(list.String()), 0o644); err != nil {
		return err
	}
	return os.RemoveAll(archives)
}

func (a apt) get(ctx context.Context, dir string, args ...string) (string, error) {
	return RunIn(ctx, dir, "apt-get", slices.Concat([]string{
		"-qq", "-o", "Dir::State=" + filepath.Join(a.dir, "state"), "-o", "Dir::Cache=" + filepath.Join(a.dir, "cache"),
		"-o", "Dir::State::status=/var/lib/dpkg/status", "-o", "APT::Sandbox::User=",
		"-o", "Acquire::http::Timeout=30", "-o", "Acquire::https::Timeout=30",
	}, a.foreign, args)...)
}

// RunIn runs a command in dir and returns its output.
func RunIn(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// UnpackWithDependencies downloads packages with the dependencies that are not
// installed, and unpacks them into dir. apt's state is in work: only root may
// change that of the system.
func UnpackWithDependencies(ctx context.Context, work, dir string, options, packages []string) error {
	archives := filepath.Join(work, "cache", "archives")
	for _, d := range []string{filepath.Join(work, "lists", "partial"), filepath.Join(archives, "partial")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return fmt.Errorf("create directory: %w", err)
		}
	}
	options = append([]string{
		"-o", "Debug::NoLocking=1", "-o", "Dir::State::Lists=" + filepath.Join(work, "lists"), "-o", "Dir::Cache=" + filepath.Join(work, "cache"),
	}, options...)
	if err := AptGet(ctx, work, options, "update"); err != nil {
		return err
	}
	if err := AptGet(ctx, work, options, append([]string{"install", "--yes", "--no-install-recommends", "--download-only"}, packages...)...); err != nil {
		return err
	}
	found, err := filepath.Glob(filepath.Join(archives, "*.deb"))
	if err != nil || len(found) == 0 {
		return fmt.Errorf("apt-get downloaded none of the packages %q", packages)
	}
	for _, file := range found {
		if _, err := RunIn(ctx, work, "dpkg-deb", "-x", file, dir); err != nil {
			return err
		}
	}
	return nil
}

// AptGet runs apt-get in dir without prompts.
func AptGet(ctx context.Context, dir string, options []string, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", append(append([]string{"-q"}, options...), args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if out, err := cmd.CombinedOutput(); err != nil {
		text := strings.TrimSpace(string(out))
		return fmt.Errorf("apt-get %s (is the package mirror reachable?): %w\n%s", args[0], err, text[max(0, len(text)-2000):])
	}
	return nil
}

// DebianRelease returns the name and version of the distribution in one word.
func DebianRelease() (string, error) {
	id, version, err := Distribution()
	return id + version, err
}

// Distribution returns the name and the version of the distribution.
func Distribution() (id, version string, err error) {
	values, err := osRelease()
	return values["ID"], values["VERSION_ID"], err
}

func osRelease() (map[string]string, error) {
	data, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return nil, fmt.Errorf("detect distribution: %w", err)
	}
	values := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), "="); ok {
			values[name] = strings.Trim(value, `"`)
		}
	}
	return values, nil
}

// foreignSources returns the package sources for an architecture that those of the machine do not
// contain, or "" if they do. Ubuntu has different servers for amd64 and for other architectures.
func foreignSources(release map[string]string, machine, arch string) string {
	if release["ID"] != "ubuntu" || machine == arch {
		return ""
	}
	server := "http://ports.ubuntu.com/ubuntu-ports"
	if arch == "amd64" {
		server = "http://archive.ubuntu.com/ubuntu"
	}
	var sources strings.Builder
	for _, suffix := range []string{"", "-updates", "-security"} {
		fmt.Fprintf(&sources, "deb [signed-by=/usr/share/keyrings/ubuntu-archive-keyring.gpg] %s %s%s main\n", server, release["VERSION_CODENAME"], suffix)
	}
	return sources.String()
}
