package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/devenv/node"
)

// loadDemo imports images of PostgreSQL and Milvus into a running cluster, so that the
// chart's demo and its backups run on a node that cannot pull images. It prints the values
// for Helm's --set that select these images and those of Mnemo.
func loadDemo(ctx context.Context, o options) error {
	cache, err := devenv.OpenCache(devenv.NewProgress(os.Stderr))
	if err != nil {
		return err
	}
	stores, err := node.StoreImages(ctx, cache)
	if err != nil {
		return err
	}
	values := []string{"image.tag=" + o.tag, "embeddings.local.image.reference=" + modelImage}
	for _, s := range stores {
		if err := node.ImportImage(ctx, devenv.Options{Dir: o.dir, Cache: cache}, s.Name, s.Image); err != nil {
			return err
		}
		for _, value := range s.Values {
			values = append(values, value+"="+s.Name)
		}
	}
	fmt.Println(strings.Join(values, ","))
	return nil
}
