package milvus_test

import (
	"context"
	"math"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/milvus-io/milvus-sdk-go/v2/client"

	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/milvus"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

const dimensions = 16

var collections atomic.Int64

// bundle is an index on the test server with a separate collection.
type bundle struct {
	*milvus.Index
	prefix      string
	location    placement.Location // ensured
	partitionID int64              // in Milvus
	tenant      tenant.ID
	alice       tenant.Scope
	bob         tenant.Scope
}

// setup opens an index on the test server and creates a collection, which is dropped when
// the test ends.
func setup(t *testing.T) bundle {
	t.Helper()
	return setupWith(t, dimensions)
}

// setupWith is setup with vectors of the given length.
func setupWith(t *testing.T, dimensions int) bundle {
	t.Helper()
	b := prepareWith(t, dimensions)
	b.partitionID = ensured(t, b.Index, b.location)
	return b
}

// ensured creates a location and returns its id in Milvus.
func ensured(t *testing.T, x *milvus.Index, p placement.Location) int64 {
	t.Helper()
	id, err := placement.WaitLoaded(x).Ensure(t.Context(), placement.Placement{Location: p})
	if err != nil || id == 0 {
		t.Fatalf("Ensure = %d, %v, want an id", id, err)
	}
	return id
}

// prepare is setup without the collection.
func prepare(t *testing.T) bundle {
	t.Helper()
	return prepareWith(t, dimensions)
}

func prepareWith(t *testing.T, dimensions int) bundle {
	t.Helper()
	prefix := "t" + strconv.FormatInt(time.Now().UnixNano(), 36) + strconv.FormatInt(collections.Add(1), 36) + "_"
	b := bundle{
		prefix:   prefix,
		location: placement.Location{Collection: "mnemo_1", Partition: "p_one"},
		tenant:   "one",
		alice:    tenant.Scope{Tenant: "one", User: 1},
		bob:      tenant.Scope{Tenant: "one", User: 2},
	}
	c := config(t, prefix)
	c.Dimensions = dimensions
	b.Index = open(t, c)
	t.Cleanup(func() { dropCollection(t, prefix+b.location.Collection) })
	return b
}

func config(t *testing.T, prefix string) milvus.Config {
	t.Helper()
	server := testkit.Milvus(t)
	return milvus.Config{Address: server.Addr, Username: server.User, Password: server.Password,
		Prefix: prefix, Dimensions: dimensions}
}

func open(t *testing.T, c milvus.Config) *milvus.Index {
	t.Helper()
	x, err := milvus.Open(t.Context(), c)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = x.Close() })
	return x
}

// dropCollection uses the SDK directly, because Index never drops a collection.
func dropCollection(t *testing.T, name string) {
	t.Helper()
	c, err := sdk(context.Background(), t)
	if err != nil {
		t.Errorf("connect to Milvus: %v", err)
		return
	}
	defer func() { _ = c.Close() }()
	if err := c.DropCollection(context.Background(), name); err != nil {
		t.Errorf("drop collection %s: %v", name, err)
	}
}

func sdk(ctx context.Context, t *testing.T) (client.Client, error) {
	t.Helper()
	server := testkit.Milvus(t)
	return client.NewClient(ctx, client.Config{Address: server.Addr, Username: server.User, Password: server.Password})
}

// randomVector returns a unit vector.
func randomVector(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	sum := 0.0
	for i := range v {
		v[i] = float32(r.NormFloat64())
		sum += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

// axis returns the unit vector along a dimension.
func axis(i int) []float32 {
	v := make([]float32, dimensions)
	v[i] = 1
	return v
}

// entry returns the entry of a memory. Its vector is the axis with the number id modulo
// dimensions.
func entry(id int, user tenant.UserID, group int64) indexing.Entry {
	return indexing.Entry{ID: retrieve.UnitID(id), User: int64(user), Kind: retrieve.Memory, Group: group, Vector: axis(id % dimensions)}
}

func (b bundle) upsert(t *testing.T, p placement.Location, entries ...indexing.Entry) {
	t.Helper()
	if err := b.Upsert(t.Context(), b.tenant, p, entries); err != nil {
		t.Fatalf("Upsert: %v", err)
	}
	b.settle(t, p)
}

// settle waits until searches see all writes: List reads at strong consistency, after
// which the server's bounded reads see them too.
func (b bundle) settle(t *testing.T, p placement.Location) {
	t.Helper()
	if _, err := b.List(t.Context(), b.tenant, p, 0, 1); err != nil {
		t.Fatalf("List: %v", err)
	}
}

func (b bundle) list(t *testing.T, p placement.Location) []retrieve.UnitID {
	t.Helper()
	ids, err := b.List(t.Context(), b.tenant, p, 0, 1000)
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	return ids
}

// search returns the ids that a search along axis 1 finds, in ascending order.
func (b bundle) search(t *testing.T, s tenant.Scope, p placement.Location, q retrieve.Request) []retrieve.UnitID {
	t.Helper()
	if q.Kind == 0 {
		q.Kind = retrieve.Memory
	}
	if q.Limit == 0 {
		q.Limit = 100
	}
	hits, err := b.Search(t.Context(), s, p, q, axis(1))
	if err != nil {
		t.Fatalf("Search: %v", err)
	}
	return sortedIDs(hits)
}
