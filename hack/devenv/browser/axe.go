package browser

import (
	"context"
	"os"
	"path"
	"path/filepath"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// axeWheel contains axe-core 4.12.1 (MPL-2.0), which tests run in the browser.
var axeWheel = devenv.Wheel{
	Name:    "axe-playwright-python",
	Version: "0.1.8",
	SHA256:  "fdd263c998388f1a8e67cad02677e612d946248bd44d163be5e8650ea31f95f8",
}

// Axe returns the path of axe-core, a script that reports accessibility problems
// of a page. It is downloaded if it is not cached.
func Axe(ctx context.Context, cache *devenv.Cache) (string, error) {
	dir, err := cache.Ensure(ctx, devenv.Entry{
		Key:   "axe-" + axeWheel.Version,
		Title: "axe-core",
		Doing: "downloading 0.2 MB with pip, once",
		Space: 10 << 20,
		Fill:  fillAxe,
	})
	return filepath.Join(dir, "axe.min.js"), err
}

func fillAxe(ctx context.Context, dir string) error {
	file, err := axeWheel.Fetch(ctx, dir)
	if err != nil {
		return err
	}
	err = devenv.Extract(file, func(name string) string {
		if path.Base(name) == "axe.min.js" {
			return filepath.Join(dir, "axe.min.js")
		}
		return ""
	}, nil)
	if err != nil {
		return err
	}
	return os.Remove(file)
}
