// Command build builds the Python and npm packages of the checkout into a directory.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/sdk"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: go run ./hack/sdk/build VERSION DIRECTORY")
		os.Exit(2)
	}
	if err := build(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "sdk:", err)
		os.Exit(1)
	}
}

func build(ctx context.Context, version, out string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("create output directory: %w", err)
	}
	cache, err := devenv.OpenCache(devenv.NewProgress(os.Stderr))
	if err != nil {
		return err
	}
	tools, err := devenv.OpenSDKTools(ctx, cache)
	if err != nil {
		return err
	}
	return sdk.Build(ctx, tools, ".", version, out)
}
