package main

import (
	"context"
	"fmt"
	"os"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/sdk"
)

func main() {
	if err := generate(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "sdk:", err)
		os.Exit(1)
	}
}

func generate(ctx context.Context) error {
	cache, err := devenv.OpenCache(devenv.NewProgress(os.Stderr))
	if err != nil {
		return err
	}
	tools, err := devenv.OpenSDKTools(ctx, cache)
	if err != nil {
		return err
	}
	return sdk.Generate(ctx, tools, ".")
}
