package devenv

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fakeApt adds an apt-get with one package to the PATH. The returned function
// sets the package's version; with "" apt-get fails as if there were no network.
func fakeApt(t *testing.T) (version func(string)) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "version")
	scripts := map[string]string{
		"apt-get": `version=$(cat ` + file + `) || { echo "no network" >&2; exit 100; }
case "$*" in
*--print-uris*) echo "'http://x/thing.deb' thing_${version}_amd64.deb 7 SHA256:00" ;;
*download*) echo "$version" > "thing_${version}_amd64.deb" ;;
esac`,
		"dpkg-deb": `cp "$2" "$3/content"`,
	}
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func(v string) {
		if v == "" {
			_ = os.Remove(file)
		} else if err := os.WriteFile(file, []byte(v), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEnsureDebianCachesByVersion(t *testing.T) {
	version := fakeApt(t)
	c := &Cache{Root: t.TempDir()}
	ensure := func() (string, error) {
		return EnsureDebian(t.Context(), c, Entry{Key: "thing", Title: "Thing", Fill: func(context.Context, string) error { return nil }}, "thing")
	}
	want := func(step, v string) {
		t.Helper()
		dir, err := ensure()
		if err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		if !strings.HasSuffix(dir, "-"+v) {
			t.Errorf("%s: directory %s, want it to end with version %s", step, dir, v)
		}
		content, err := os.ReadFile(filepath.Join(dir, "content"))
		if err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		if got := strings.TrimSpace(string(content)); got != v {
			t.Errorf("%s: content of version %q, want %s", step, got, v)
		}
	}
	version("")
	if _, err := ensure(); err == nil || !strings.Contains(err.Error(), "no network") {
		t.Errorf("empty cache and no network: error %v, want the error of apt-get", err)
	}
	version("1.0-1")
	want("first version", "1.0-1")
	version("1.0-2")
	want("same day", "1.0-1")
	release, err := DebianRelease()
	if err != nil {
		t.Fatal(err)
	}
	nextDay := func() {
		t.Helper()
		then := time.Now().Add(-2 * versionsTTL)
		if err := os.Chtimes(filepath.Join(c.Root, "apt-"+release, "thing-"+release+"-versions"), then, then); err != nil {
			t.Fatal(err)
		}
	}
	nextDay()
	want("next day", "1.0-2")
	nextDay()
	version("")
	want("no network", "1.0-2")
}

// TestLibrariesCacheByVersion: an update of the distribution's libraries results in other images, also for another architecture.
func TestLibrariesCacheByVersion(t *testing.T) {
	version := fakeApt(t)
	c := &Cache{Root: t.TempDir()}
	dirs := map[string]bool{}
	for _, v := range []string{"2.36-9+deb12u1", "1%3a2.36-9+deb12u2"} {
		version(v)
		a := apt{dir: filepath.Join(c.Root, "apt-of-"+v[:3])} // each has its own lists, which are valid for a day
		var err error
		if a.foreign, err = emptySystem(a.dir, map[string]string{"ID": "debian"}, "arm64"); err != nil {
			t.Fatal(err)
		}
		dir, err := a.ensure(t.Context(), c, Entry{Key: "libraries-", Title: "Libraries", Fill: func(context.Context, string) error { return nil }}, []string{"thing"})
		if err != nil {
			t.Fatal(err)
		}
		dirs[dir] = true
		packages, err := Packages(dir)
		if err != nil {
			t.Fatal(err)
		}
		want := []Package{{Name: "thing", Version: strings.ReplaceAll(v, "%3a", ":"), Arch: "amd64"}}
		if diff := cmp.Diff(want, packages); diff != "" {
			t.Errorf("packages (-want +got):\n%s", diff)
		}
	}
	if len(dirs) != 2 {
		t.Errorf("two versions are in %d directories", len(dirs))
	}
}

// TestForeignSources checks from where the libraries of an image for another architecture are
// downloaded. Ubuntu, which builds releases, has no packages for arm64 in its usual sources.
func TestForeignSources(t *testing.T) {
	t.Parallel()
	ubuntu := map[string]string{"ID": "ubuntu", "VERSION_CODENAME": "noble"}
	sources := func(server string) string {
		const key = "deb [signed-by=/usr/share/keyrings/ubuntu-archive-keyring.gpg] "
		return key + server + " noble main\n" + key + server + " noble-updates main\n" + key + server + " noble-security main\n"
	}
	cases := map[string]struct {
		release             map[string]string
		machine, arch, want string
	}{
		"Debian":        {map[string]string{"ID": "debian"}, "amd64", "arm64", ""},
		"UbuntuSame":    {ubuntu, "amd64", "amd64", ""},
		"UbuntuOnIntel": {ubuntu, "amd64", "arm64", sources("http://ports.ubuntu.com/ubuntu-ports")},
		"UbuntuOnArm":   {ubuntu, "arm64", "amd64", sources("http://archive.ubuntu.com/ubuntu")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, foreignSources(tc.release, tc.machine, tc.arch)); diff != "" {
				t.Errorf("sources (-want +got):\n%s", diff)
			}
		})
	}
}
