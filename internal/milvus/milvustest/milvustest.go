// Package milvustest looks into the test Milvus as the product never does.
package milvustest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// Open connects to the test server until the test ends.
func Open(tb testing.TB) client.Client {
	tb.Helper()
	addr := testkit.Milvus(tb)
	c, err := client.NewClient(tb.Context(), client.Config{Address: addr.Addr, Username: addr.User, Password: addr.Password})
	if err != nil {
		tb.Fatalf("connect to Milvus: %v", err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// Places returns what there is in the collections whose name starts so:
// partitions, and the keys of entries in shared ones.
func Places(ctx context.Context, c client.Client, prefix string) ([]placement.Location, error) {
	collections, err := c.ListCollections(ctx)
	if err != nil {
		return nil, err
	}
	var out []placement.Location
	for _, l := range collections {
		if !strings.HasPrefix(l.Name, prefix) {
			continue
		}
		found, err := c.DescribeCollection(ctx, l.Name)
		if err != nil {
			return nil, err
		}
		shared := slices.ContainsFunc(found.Schema.Fields, func(f *entity.Field) bool { return f.IsPartitionKey })
		names, err := names(ctx, c, l.Name, shared)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			out = append(out, placement.Location{Collection: l.Name, Partition: name, Shared: shared})
		}
	}
	return out, nil
}

func names(ctx context.Context, c client.Client, collection string, shared bool) (out []string, err error) {
	if !shared {
		partitions, err := c.ShowPartitions(ctx, collection)
		for _, p := range partitions {
			if p.Name != "_default" {
				out = append(out, p.Name)
			}
		}
		return out, err
	}
	// One whose maker was stopped half way is not loaded; without an index it
	// cannot be, and nothing was ever written to it.
	if indexes, _ := c.DescribeIndex(ctx, collection, "embedding"); len(indexes) == 0 {
		return nil, nil
	}
	if err := c.LoadCollection(ctx, collection, false); err != nil {
		return nil, err
	}
	rows, err := c.Query(ctx, collection, nil, "id > 0", []string{"place"}, client.WithSearchQueryConsistencyLevel(entity.ClStrong))
	if err != nil && !strings.Contains(err.Error(), "extra output fields") { // how the SDK tells of an empty answer
		return nil, err
	}
	if keys, ok := rows.GetColumn("place").(*entity.ColumnVarChar); ok {
		out = slices.Compact(slices.Sorted(slices.Values(keys.Data())))
	}
	return out, nil
}

// Drop drops the collections whose name starts so.
func Drop(ctx context.Context, c client.Client, prefix string) error {
	collections, err := c.ListCollections(ctx)
	if err != nil {
		return err
	}
	for _, l := range collections {
		if strings.HasPrefix(l.Name, prefix) {
			if err := c.DropCollection(ctx, l.Name); err != nil {
				return err
			}
		}
	}
	return nil
}
