// Package milvustest inspects the Milvus of the tests.
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

// Locations returns the partitions, and the keys in shared collections, of the
// collections with the prefix.
func Locations(ctx context.Context, c client.Client, prefix string) ([]placement.Location, error) {
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
	// A partly created collection without an index cannot be loaded and is empty.
	if indexes, _ := c.DescribeIndex(ctx, collection, "embedding"); len(indexes) == 0 {
		return nil, nil
	}
	if err := c.LoadCollection(ctx, collection, false); err != nil {
		return nil, err
	}
	rows, err := c.Query(ctx, collection, nil, "id > 0", []string{"placement"}, client.WithSearchQueryConsistencyLevel(entity.ClStrong))
	if err != nil && !strings.Contains(err.Error(), "extra output fields") { // how the SDK reports an empty result
		return nil, err
	}
	if keys, ok := rows.GetColumn("placement").(*entity.ColumnVarChar); ok {
		out = slices.Compact(slices.Sorted(slices.Values(keys.Data())))
	}
	return out, nil
}

// Drop drops the collections with the prefix.
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
