package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// systemPrograms are what cannot be built from a Go module: runc needs C for
// seccomp, iptables is C. They are the machine's own, or else unpacked packages
// of its distribution.
type systemPrograms struct {
	// env makes the programs found, and find their libraries.
	env []string
}

// systemPackages are runc and iptables with the libraries a small system lacks.
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
		Fill:  nameSystem,
	}, systemPackages...)
	if err != nil {
		return systemPrograms{}, fmt.Errorf("%w: install runc and iptables instead", err)
	}
	return systemAt(dir)
}

// systemAt tells how the programs unpacked in dir are run.
func systemAt(dir string) (systemPrograms, error) {
	extensions, err := filepath.Glob(filepath.Join(dir, "usr", "lib", "*", "xtables"))
	if err != nil || len(extensions) != 1 {
		return systemPrograms{}, fmt.Errorf("%s holds no extensions of iptables: remove it to have it downloaded again", dir)
	}
	libraries := filepath.Dir(extensions[0])
	return systemPrograms{env: []string{
		"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH") + ":/usr/sbin:/sbin",
		// Debian still unpacks some libraries to /lib.
		"LD_LIBRARY_PATH=" + libraries + ":" + filepath.Join(dir, "lib", filepath.Base(libraries)),
		"XTABLES_LIBDIR=" + extensions[0],
	}}, nil
}

// nameSystem gives the unpacked programs the names that installing them would.
func nameSystem(ctx context.Context, dir string) error {
	bin := filepath.Join(dir, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return fmt.Errorf("create directory: %w", err)
	}
	links := map[string]string{"runc": "../usr/sbin/runc"}
	for _, name := range []string{"iptables", "ip6tables"} {
		for _, does := range []string{"", "-save", "-restore"} {
			links[name+does] = "../usr/sbin/xtables-nft-multi"
		}
	}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(bin, name)); err != nil {
			return fmt.Errorf("name %s: %w", name, err)
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
