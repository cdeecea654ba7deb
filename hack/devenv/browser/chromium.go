package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// chromiumPackages are the Debian packages of the browser and a font.
var chromiumPackages = []string{"chromium", "fonts-inter"}

// chromiumNames are the program names of an installed browser.
var chromiumNames = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// Chromium returns the path of an installed Chromium. Without one it provides
// Debian's: root installs it, other users unpack it into the cache.
func Chromium(ctx context.Context, cache *devenv.Cache) (string, error) {
	if path := installedChromium(); path != "" {
		return path, nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return "", errors.New("Chromium is missing: put `chromium` into the PATH (without apt-get it cannot be downloaded)")
	}
	if os.Geteuid() != 0 {
		return unpackedChromium(ctx, cache)
	}
	// The packages are installed on the machine; only the lock is in the cache.
	unlock, err := cache.Lock(ctx, devenv.Entry{Key: "chromium", Title: "Chromium"})
	if err != nil {
		return "", err
	}
	defer unlock()
	if path := installedChromium(); path != "" {
		return path, nil
	}
	if err := installChromium(ctx, cache.Progress); err != nil {
		return "", fmt.Errorf("install Chromium: %w", err)
	}
	if path := installedChromium(); path != "" {
		return path, nil
	}
	return "", errors.New("apt-get installed chromium, but it is not in the PATH")
}

func installedChromium() string {
	for _, name := range chromiumNames {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

func installChromium(ctx context.Context, progress *devenv.Progress) (err error) {
	done := progress.Step("Chromium", "installing Debian's with apt-get, 100 MB, once")
	defer func() { done(err) }()
	if err := devenv.AptGet(ctx, "", nil, "update"); err != nil {
		return err
	}
	return devenv.AptGet(ctx, "", nil, append([]string{"install", "--yes", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300"}, chromiumPackages...)...)
}

// unpackedChromium returns Debian's Chromium with its missing dependencies,
// unpacked in the cache.
func unpackedChromium(ctx context.Context, cache *devenv.Cache) (string, error) {
	release, err := devenv.DebianRelease()
	if err != nil {
		return "", err
	}
	dir, err := cache.Ensure(ctx, devenv.Entry{
		Key:   "chromium-" + release,
		Title: "Chromium",
		Doing: "downloading Debian's with apt-get and unpacking, 100 MB, once",
		Space: 1 << 30,
		Fill:  fillChromium,
	})
	return filepath.Join(dir, "chromium"), err
}

func fillChromium(ctx context.Context, dir string) error {
	work := filepath.Join(dir, "apt")
	if err := devenv.UnpackWithDependencies(ctx, work, filepath.Join(dir, "root"), nil, chromiumPackages); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "fonts.conf"), []byte(fontsConf), 0o644); err != nil {
		return fmt.Errorf("write fonts.conf: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "chromium"), []byte(chromiumScript), 0o755); err != nil {
		return fmt.Errorf("write start script: %w", err)
	}
	if _, err := devenv.RunIn(ctx, dir, filepath.Join(dir, "chromium"), "--version"); err != nil {
		return fmt.Errorf("the unpacked Chromium does not run: install chromium with apt-get as root instead: %w", err)
	}
	return os.RemoveAll(work)
}

// fontsConf selects the unpacked fonts and those of the machine.
const fontsConf = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir prefix="relative">root/usr/share/fonts</dir>
  <dir>/usr/share/fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
</fontconfig>
`

// chromiumScript starts Chromium with the unpacked libraries.
const chromiumScript = `#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
libraries=$(find "$here/root" -name '*.so*' -printf '%h\n' | sort -u | tr '\n' ':')
LD_LIBRARY_PATH="$libraries$LD_LIBRARY_PATH" FONTCONFIG_FILE="$here/fonts.conf" exec "$here/root/usr/lib/chromium/chromium" "$@"
`
