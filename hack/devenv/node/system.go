package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// systemPrograms are programs that cannot be built from a Go module: runc needs C
// for seccomp, and iptables is written in C. They are installed on the machine, or
// unpacked from packages of its distribution.
type systemPrograms struct {
	// env sets the search paths of the programs and their libraries.
	env []string
}

// systemPackages are runc and iptables with libraries that a minimal system lacks.
var systemPackages = []string{
	"runc", "libseccomp2", "iptables", "libip4tc2", "libip6tc2", "libxtables12", "libmnl0",
	"libnetfilter-conntrack3", "libnfnetlink0", "libnftnl11",
}

func findSystemPrograms(ctx context.Context, cache *devenv.Cache) (systemPrograms, error) {
	missing := false
	for _, name := range []string{"runc", "iptables", "iptables-restore", "iptables-save"} {
		if _, err := exec.LookPath(name); err != nil {
			missing = true
		}
	}
	if !missing {
		return systemPrograms{}, nil
	}
	dir, err := devenv.EnsureDebian(ctx, cache, devenv.Entry{
		Key:   "node-system",
		Title: "runc and iptables",
		Doing: "downloading the distribution's packages, 4 MB, once",
		Space: 100 << 20,
		Fill:  linkSystem,
	}, systemPackages...)
	if err != nil {
		return systemPrograms{}, fmt.Errorf("%w: install runc and iptables instead", err)
	}
	return systemAt(dir)
}

// systemAt returns the programs that are unpacked in dir.
func systemAt(dir string) (systemPrograms, error) {
	extensions, err := filepath.Glob(filepath.Join(dir, "usr", "lib", "*", "xtables"))
	if err != nil || len(extensions) != 1 {
		return systemPrograms{}, fmt.Errorf("%s contains no extensions of iptables: remove it to download it again", dir)
	}
	libraries := filepath.Dir(extensions[0])
	return systemPrograms{env: []string{
		"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH") + ":/usr/sbin:/sbin",
		// Debian still unpacks some libraries to /lib.
		"LD_LIBRARY_PATH=" + libraries + ":" + filepath.Join(dir, "lib", filepath.Base(libraries)),
		"XTABLES_LIBDIR=" + extensions[0],
	}}, nil
}

// linkSystem creates the names of the unpacked programs that an installation
// would create.
func linkSystem(ctx context.Context, dir string) error {
	bin := filepath.Join(dir, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return fmt.Errorf("create directory: %w", err)
	}
	links := map[string]string{"runc": "../usr/sbin/runc"}
	for _, name := range []string{"iptables", "ip6tables"} {
		for _, suffix := range []string{"", "-save", "-restore"} {
			links[name+suffix] = "../usr/sbin/xtables-nft-multi"
		}
	}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(bin, name)); err != nil {
			return fmt.Errorf("link %s: %w", name, err)
		}
	}
	system, err := systemAt(dir)
	if err != nil {
		return err
	}
	for _, name := range []string{"runc", "iptables"} {
		cmd := exec.CommandContext(ctx, filepath.Join(bin, name), "--version")
		cmd.Env = append(os.Environ(), system.env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("the downloaded %s does not run on this machine (install runc and iptables): %w\n%s", name, err, out)
		}
	}
	return nil
}
