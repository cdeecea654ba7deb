package milvustest

import (
	"context"
	"fmt"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// Client is the client of the Milvus SDK, which only this package may import.
type Client = client.Client

// Connect connects to a server.
func Connect(ctx context.Context, at testkit.MilvusAddr) (Client, error) {
	c, err := client.NewClient(ctx, client.Config{Address: at.Addr, Username: at.User, Password: at.Password})
	if err != nil {
		return nil, fmt.Errorf("connect to Milvus: %w", err)
	}
	return c, nil
}

// Collection creates and loads a collection like those of the product.
func Collection(ctx context.Context, c Client, name string, dimensions int64) error {
	schema := entity.NewSchema().WithName(name).
		WithField(entity.NewField().WithName("id").WithDataType(entity.FieldTypeInt64).WithIsPrimaryKey(true)).
		WithField(entity.NewField().WithName("user_id").WithDataType(entity.FieldTypeInt64)).
		WithField(entity.NewField().WithName("kind").WithDataType(entity.FieldTypeInt16)).
		WithField(entity.NewField().WithName("group_id").WithDataType(entity.FieldTypeInt64)).
		WithField(entity.NewField().WithName("embedding").WithDataType(entity.FieldTypeFloatVector).WithDim(dimensions))
	if err := c.CreateCollection(ctx, schema, 1, client.WithConsistencyLevel(entity.ClStrong)); err != nil {
		return fmt.Errorf("create collection: %w", err)
	}
	index, err := entity.NewIndexHNSW(entity.COSINE, 16, 200)
	if err != nil {
		return fmt.Errorf("describe index: %w", err)
	}
	if err := c.CreateIndex(ctx, name, "embedding", index, true); err != nil {
		return fmt.Errorf("create index: %w", err)
	}
	if err := c.LoadCollection(ctx, name, false); err != nil {
		return fmt.Errorf("load collection: %w", err)
	}
	return nil
}

// IDs returns the ids of a partition with duplicates, which the product's own list hides. It reads at
// most 16,384.
func IDs(ctx context.Context, c Client, at placement.Location) ([]int64, error) {
	rows, err := c.Query(ctx, at.Collection, []string{at.Partition}, "id > 0", []string{"id"},
		client.WithSearchQueryConsistencyLevel(entity.ClStrong), client.WithLimit(16384))
	if err != nil {
		return nil, fmt.Errorf("query partition: %w", err)
	}
	ids, ok := rows.GetColumn("id").(*entity.ColumnInt64)
	if !ok {
		return nil, fmt.Errorf("query partition: ids are not numbers")
	}
	return ids.Data(), nil
}
