package main

import (
	"context"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/sdk"
)

// buildSDKs builds the Python and npm packages.
func (r *release) buildSDKs(ctx context.Context) error {
	cache, err := devenv.OpenCache(devenv.NewProgress(r.log))
	if err != nil {
		return err
	}
	tools, err := devenv.OpenSDKTools(ctx, cache)
	if err != nil {
		return err
	}
	if err := sdk.Build(ctx, tools, r.Root, r.Version, r.Out); err != nil {
		return err
	}
	r.logf("built   the Python and npm packages")
	return nil
}
