package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/devenv/milvus"
	"github.com/mnemo-dev/mnemo/hack/devenv/postgres"
	"github.com/mnemo-dev/mnemo/hack/image"
)

// StoreImage is an image of PostgreSQL or Milvus for the chart's demo and its backups,
// for a node that cannot pull images.
type StoreImage struct {
	// Values are the names of the chart values that select the image.
	Values []string
	// Name has the form repository:tag.
	Name  string
	Image v1.Image
}

// StoreImages builds the images from the servers of devenv/postgres and
// devenv/milvus and from the distribution's packages.
func StoreImages(ctx context.Context, cache *devenv.Cache) ([]StoreImage, error) {
	system, err := storeSystem(ctx, cache)
	if err != nil {
		return nil, err
	}
	postgresDir, err := postgres.Binaries(ctx, cache)
	if err != nil {
		return nil, err
	}
	clients, err := postgres.Clients(ctx, cache)
	if err != nil {
		return nil, err
	}
	milvusDir, err := milvus.Files(ctx, cache)
	if err != nil {
		return nil, err
	}
	programs, err := devenv.EnsureBuilt(ctx, cache, []devenv.Built{nodeProgram("entrypoint", "milvus", ".", "a second")})
	if err != nil {
		return nil, err
	}
	done := cache.Progress.Step("images", "packing PostgreSQL and Milvus")
	images, err := packStores(system, postgresDir, clients, milvusDir, programs["entrypoint"])
	done(err)
	return images, err
}

func packStores(system, postgresDir, clients, milvusDir, entrypoint string) ([]StoreImage, error) {
	server, err := image.Postgres(system, postgresDir, clients)
	if err != nil {
		return nil, err
	}
	configs, err := os.MkdirTemp("", "mnemo-milvus-")
	if err != nil {
		return nil, fmt.Errorf("write Milvus configuration: %w", err)
	}
	defer func() { _ = os.RemoveAll(configs) }()
	if err := writeImageConfig(milvusDir, configs); err != nil {
		return nil, err
	}
	index, err := image.Milvus(system, filepath.Join(milvusDir, "bin"), configs, entrypoint)
	if err != nil {
		return nil, err
	}
	major, _, _ := strings.Cut(string(postgres.Version), ".")
	return []StoreImage{
		{Values: []string{"demoImages.postgres", "backup.image"}, Name: "mnemo.local/postgres:" + major, Image: server},
		{Values: []string{"demoImages.milvus"}, Name: "mnemo.local/milvus:v" + milvus.Wheel.Version, Image: index},
	}, nil
}

// writeImageConfig writes the configuration of the official image, which uses an
// external etcd and object storage.
func writeImageConfig(milvusDir, dir string) error {
	template, err := os.ReadFile(filepath.Join(milvusDir, "config.yaml.template"))
	if err != nil {
		return fmt.Errorf("read Milvus template: %w", err)
	}
	config, err := milvus.RenderConfig(string(template), map[string]string{
		"etcd_data_dir": "default.etcd", "local_storage_dir": "/var/lib/milvus/data/", "rocksmq_data_dir": "/var/lib/milvus/rdb_data",
		"system_log_path": `""`,
	})
	if err != nil {
		return err
	}
	for lite, official := range map[string]string{"embed: true": "embed: false", "storageType: local": "storageType: remote"} {
		if strings.Count(config, lite) != 1 {
			return fmt.Errorf("the Milvus template does not contain %q exactly once", lite)
		}
		config = strings.Replace(config, lite, official, 1)
	}
	glog, err := os.ReadFile(filepath.Join(milvusDir, "glog.conf"))
	if err != nil {
		return fmt.Errorf("read Milvus template: %w", err)
	}
	for name, content := range map[string][]byte{"milvus.yaml": []byte(config), "glog.conf": glog} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return fmt.Errorf("write Milvus configuration: %w", err)
		}
	}
	return nil
}

// storePackages are a shell with its tools, PostgreSQL's clients, and libraries
// that the servers need but do not include.
var storePackages = []string{"bash", "coreutils", "findutils", "libc-bin", "libstdc++6", "postgresql-client"}

// notUnpacked are dependencies of those packages that the files we use do not need.
// apt-get is made to believe that they are installed.
var notUnpacked = []string{"dpkg", "mawk", "postgresql-client-common", "sensible-utils"}

// storeSystem returns a directory with the unpacked packages.
func storeSystem(ctx context.Context, cache *devenv.Cache) (string, error) {
	release, err := devenv.DebianRelease()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(strings.Join(slices.Concat(storePackages, notUnpacked), " ")))
	return cache.Ensure(ctx, devenv.Entry{
		Key:   "stores-" + release + "-" + hex.EncodeToString(sum[:6]),
		Title: "packages for images of PostgreSQL and Milvus",
		Doing: "downloading from the distribution with apt-get, 18 MB, once",
		Space: 200 << 20,
		Fill:  fillStoreSystem,
	})
}

func fillStoreSystem(ctx context.Context, dir string) error {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("%w: the images are built from Debian packages", devenv.ErrNoPackages)
	}
	apt := filepath.Join(dir, "apt")
	if err := os.Mkdir(apt, 0o755); err != nil {
		return fmt.Errorf("create directory: %w", err)
	}
	// An empty system, so that all other dependencies are downloaded.
	var status strings.Builder
	for _, name := range notUnpacked {
		_, _ = fmt.Fprintf(&status, "Package: %s\nStatus: install ok installed\nVersion: 999\nArchitecture: all\nMaintainer: none\nDescription: none\n\n", name)
	}
	if err := os.WriteFile(filepath.Join(apt, "status"), []byte(status.String()), 0o644); err != nil {
		return fmt.Errorf("write list of packages: %w", err)
	}
	options := []string{
		"-o", "APT::Sandbox::User=", "-o", "Dir::State=" + apt, "-o", "Dir::State::status=" + filepath.Join(apt, "status"),
	}
	if err := devenv.UnpackWithDependencies(ctx, apt, dir, options, storePackages); err != nil {
		return err
	}
	return os.RemoveAll(apt)
}
