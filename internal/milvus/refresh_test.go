package milvus

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// Making Milvus read its partitions again leaves them as they are.
func TestRefresh(t *testing.T) {
	t.Parallel()
	at := testkit.Milvus(t)
	x, err := Open(t.Context(), Config{Address: at.Addr, Username: at.User, Password: at.Password, Dimensions: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	p := placement.Location{Collection: "refresh_" + strings.ToLower(rand.Text()), Partition: "p_one"}
	for err = placement.ErrLoading; errors.Is(err, placement.ErrLoading); {
		if _, err = x.Ensure(t.Context(), placement.Placement{Location: p}); err != nil {
			<-time.After(50 * time.Millisecond)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = x.client.DropCollection(t.Context(), x.collection(p)) }()
	for range 2 {
		if err := x.refresh(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	list, err := x.client.ShowPartitions(t.Context(), x.collection(p))
	if err != nil || len(list) != 2 { // and _default
		t.Errorf("%d partitions, %v, want 2", len(list), err)
	}
	if _, err := x.Ensure(t.Context(), placement.Placement{Location: p}); err != nil {
		t.Error(err)
	}
}
