package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"

	"github.com/alecthomas/kong"
)

// release is one run of the command.
type release struct {
	Version  string   `required:"" help:"Version without a leading v. Only a version without a suffix needs a dated section in CHANGELOG.md."`
	Registry string   `default:"ghcr.io/mnemo-dev" help:"Registry and path of the images; the chart is pushed below it to charts/mnemo."`
	Targets  []target `default:"linux/amd64,linux/arm64,darwin/amd64,darwin/arm64" help:"Systems of the binaries. Those on linux also get an image."`
	Root     string   `default:"." type:"existingdir" help:"Top of the checkout."`
	Out      string   `default:"dist" type:"path" help:"Directory for the files. It must be empty or absent."`
	Push     bool     `help:"Push the images and the chart to the registry, with the credentials of docker login."`

	compression int // the level of package gzip for archives and images
	log         io.Writer
	work        string // a directory for intermediate files
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r := release{compression: gzip.BestCompression, log: os.Stdout}
	kong.Parse(&r, kong.Name("release"), kong.Description("Build the files, images, chart, OLM bundle and SDKs of a release."))
	if err := r.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1) //nolint:gocritic // stop only unregisters the signal handler, and the process is exiting
	}
}

// run performs the steps in order. Nothing is pushed unless all files were built.
func (r *release) run(ctx context.Context) (err error) {
	if err := r.prepare(); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "mnemo-release-"); err != nil {
		return fmt.Errorf("create build directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(r.work) }()
	if err := r.writeNotes(); err != nil {
		return err
	}
	binaries, err := r.buildBinaries(ctx)
	if err != nil {
		return err
	}
	images, err := r.buildImages(ctx, binaries)
	if err != nil {
		return err
	}
	chart, err := r.packageChart(ctx, images)
	if err != nil {
		return err
	}
	bundle, err := r.buildBundle(ctx, chart, images[bundled])
	if err != nil {
		return err
	}
	images = append(images, bundle)
	if err := r.buildSDKs(ctx); err != nil {
		return err
	}
	if err := r.writeImages(images); err != nil {
		return err
	}
	if err := r.writeChecksums(); err != nil {
		return err
	}
	if !r.Push {
		return nil
	}
	if err := r.pushImages(ctx, images); err != nil {
		return err
	}
	return r.pushChart(ctx, chart)
}

// semver matches a version of Semantic Versioning without build metadata, which
// image tags do not allow.
var semver = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

func (r *release) prepare() error {
	if !semver.MatchString(r.Version) {
		return fmt.Errorf("version %q: expected a form such as 1.2.3 or 1.2.3-rc.1", r.Version)
	}
	if err := os.MkdirAll(r.Out, 0o755); err != nil {
		return fmt.Errorf("create output directory: %w", err)
	}
	entries, err := os.ReadDir(r.Out)
	if err != nil {
		return fmt.Errorf("read output directory: %w", err)
	}
	if len(entries) > 0 {
		return errors.New(r.Out + " is not empty: delete it first")
	}
	return nil
}

// path returns the path of an output file.
func (r *release) path(name string) string { return filepath.Join(r.Out, name) }

func (r *release) logf(format string, args ...any) { _, _ = fmt.Fprintf(r.log, format+"\n", args...) }
