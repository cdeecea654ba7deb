package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/image"
)

const (
	repository = "ghcr.io/mnemo-dev/mnemo" // as in the chart's values
	localTag   = "local"
	modelImage = "mnemo.local/e5-small-v2-int8:1" // as in values.yaml
)

type images struct{ mnemo, model v1.Image }

func (c *cluster) mnemoImage() string { return repository + ":" + c.tag }

// buildImages builds the images of Mnemo and of the model.
func (c *cluster) buildImages(ctx context.Context) (err error) {
	if c.model, err = devenv.Model(ctx, c.devenv.Cache, devenv.DefaultModel); err != nil {
		return err
	}
	done := c.progress.Step("images", "building mnemo and the model's image")
	defer func() { done(err) }()
	if c.images.mnemo, err = c.buildMnemo(ctx); err != nil {
		return err
	}
	c.images.model, err = image.Local().Model(c.model)
	return err
}

func (c *cluster) buildMnemo(ctx context.Context) (v1.Image, error) {
	binary := filepath.Join(c.dir, "images", c.tag)
	if err := os.MkdirAll(filepath.Dir(binary), 0o755); err != nil {
		return nil, fmt.Errorf("create directory: %w", err)
	}
	if err := (image.Source{Root: c.root, Version: c.tag, Overlay: c.overlay}).Build(ctx, binary); err != nil {
		return nil, err
	}
	system, onnxruntime, err := devenv.ImageLibraries(ctx, c.devenv.Cache, runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	return image.Local().Mnemo(binary, image.Libraries{System: system, ONNXRuntime: onnxruntime})
}

func (c *cluster) importImages(ctx context.Context) (err error) {
	done := c.progress.Step("images", "importing")
	defer func() { done(err) }()
	if err := c.node.Import(ctx, c.mnemoImage(), c.images.mnemo); err != nil {
		return err
	}
	return c.node.Import(ctx, modelImage, c.images.model)
}

// buildHelm builds Helm if it is not cached.
func (c *cluster) buildHelm(ctx context.Context) (err error) {
	done := c.progress.Step("Helm", "building, about 1 min on 2 cores the first time")
	defer func() { done(err) }()
	c.helm = filepath.Join(c.root, "hack", "tool.sh")
	cmd := exec.CommandContext(ctx, c.helm, "helm", "version", "--short")
	cmd.Env = append(os.Environ(), "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build Helm: %w\n%s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
