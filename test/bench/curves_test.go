package bench

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/milvus/milvustest"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/test/installation"
)

// units compares users with few and with many units, each in its own tenant.
func (s *scale) units(sizes []int) {
	server := s.serve(installation.ServerOptions{})
	var points []point
	for _, size := range sizes {
		began := time.Now()
		t := server.AddTenant(s.TB, installation.TenantOptions{Users: []string{"user", "peer"}, Partition: true})
		s.volume.load(s.TB, server, []holder{{t.Tenant, t.Users["user"], size}}, size <= placement.ExactUnits)
		if size > placement.ExactUnits {
			s.index(server, t, size)
		}
		s.fact(describe(s.TB, server, fmt.Sprintf("units of a user, up to %d", size), began))
		if !*full {
			s.checkVolume(server, t)
		}
		points = append(points, point{size, server, func(int) api { return api{url: server.URL, token: t.Tokens["user"], http: s.http} }})
	}
	s.search("units of the user", points)
	s.compare(0.95, "search p95, %d ÷ %d units of the user", "search", "units of the user", points, 2_000, map[int]float64{200_000: 4})
	s.resident("units of the largest user", points[len(points)-1:])
}

// unindexed compares users with few and with many units in an installation without Milvus.
func (s *scale) unindexed(sizes []int) {
	server := s.serve(installation.ServerOptions{Unindexed: true})
	var points []point
	for _, size := range sizes {
		t := server.AddTenant(s.TB, installation.TenantOptions{Users: []string{"user"}})
		s.volume.load(s.TB, server, []holder{{t.Tenant, t.Users["user"], size}}, true)
		points = append(points, point{size, server, func(int) api { return api{url: server.URL, token: t.Tokens["user"], http: s.http} }})
	}
	s.search("units of the user, without Milvus", points)
	s.resident("units of the largest user, without Milvus", points[len(points)-1:])
}

// checkVolume compares the rows of a loaded memory with those of a memory that was created with the same text.
func (s *scale) checkVolume(server *installation.Server, t installation.ServedTenant) {
	s.Helper()
	texts, _ := api{url: server.URL, token: t.Tokens["user"], http: s.http}.texts(s.TB, "", 1)
	if len(texts) != 1 {
		s.Fatalf("%d loaded memories are listed, want 1", len(texts))
	}
	api{url: server.URL, token: t.Tokens["peer"], http: s.http}.create(s.TB, texts[0])
	rows := func(user string) (row string) {
		if err := server.Owner.QueryRow(s.Context(), `select row(m.seq, m.text, b.name, v.version, v.text, u.kind, u.group_id = b.id, u.seq, u.span_start, u.span_end,
				u.active, u.tsv, length(u.embedding), u.generation_id)::text
			from memories m join buckets b on b.id = m.bucket_id join memory_versions v on v.memory_id = m.id join units u on u.memory_id = m.id
			where m.user_id = $1 and m.text = $2`, t.Users[user], texts[0]).Scan(&row); err != nil {
			s.Fatal(err)
		}
		return row
	}
	if diff := cmp.Diff(rows("peer"), rows("user")); diff != "" {
		s.Errorf("rows of a memory (-created +loaded):\n%s", diff)
	}
	s.settle(server)
}

// index writes the units of a tenant to Milvus with the job that rebuilds an index.
func (s *scale) index(server *installation.Server, t installation.ServedTenant, count int) {
	s.Helper()
	began := time.Now()
	if err := indexing.NewIndexer(server.DB, server.Index, nil, slog.New(slog.DiscardHandler)).Rebuild(s.Context(), t.Tenant); err != nil {
		s.Fatal(err)
	}
	took := time.Since(began)
	s.fact(fmt.Sprintf("index of %d units rebuilt in %.1f s, %.0f units/s", count, took.Seconds(), float64(count)/took.Seconds()))
	if *full {
		s.awaitSegments(t.Placement.Collection)
	}
	vacuum(s.TB, server)
}

// awaitSegments waits until Milvus has sealed the new segments and built their indexes, which it does later without a
// request. Until then it compares each vector.
func (s *scale) awaitSegments(collection string) {
	s.Helper()
	began := time.Now()
	c := milvustest.Open(s.TB)
	loaded, ok := c.(interface { // the SDK's interface lacks this method
		GetQuerySegmentInfo(ctx context.Context, collection string) ([]*entity.Segment, error)
	})
	if !ok {
		s.Fatalf("%T does not list the loaded segments", c)
	}
	if err := c.Flush(s.Context(), collection, false); err != nil {
		s.Fatal(err)
	}
	installation.Eventually(s.TB, time.Hour, func() string {
		total, indexed, err := c.GetIndexBuildProgress(s.Context(), collection, "embedding")
		if err != nil || indexed < total {
			return fmt.Sprintf("%d of %d rows are indexed, %v", indexed, total, err)
		}
		segments, err := loaded.GetQuerySegmentInfo(s.Context(), collection)
		if err != nil {
			return err.Error()
		}
		for _, segment := range segments {
			if state := segment.State.String(); segment.NumRows > 0 && state == "Growing" {
				return fmt.Sprintf("segment %d with %d rows is %s", segment.ID, segment.NumRows, state)
			}
		}
		return ""
	})
	s.fact(fmt.Sprintf("segments sealed and indexed in Milvus after %.1f s", time.Since(began).Seconds()))
}

const (
	// tenantUnits is the number of units of a tenant, and fewUnits that of the tenants beyond manyTenants, which limits
	// the space.
	tenantUnits, fewUnits = 1000, 100
	manyTenants           = 1000
)

// tenants compares few and many tenants of a user with a thousand units.
func (s *scale) tenants(sizes []int) {
	var points []point
	for _, size := range sizes {
		server, began := s.serve(installation.ServerOptions{}), time.Now()
		all := s.addTenants(server, size)
		holders := make([]holder, size)
		for i, t := range all {
			count := tenantUnits
			if i >= manyTenants {
				count = fewUnits
			}
			if !*full {
				count = 20
			}
			holders[i] = holder{t.Tenant, t.Users["user"], count}
		}
		s.volume.load(s.TB, server, holders, true)
		s.fact(describe(s.TB, server, fmt.Sprintf("%d tenants", size), began))
		measured := all[:min(size, manyTenants)]
		points = append(points, point{size, server, func(int) api {
			return api{url: server.URL, token: measured[s.volume.IntN(len(measured))].Tokens["user"], http: s.http}
		}})
	}
	s.search("tenants", points)
	s.resident("tenants", points)
	s.compare(0.5, "search p50, %d ÷ %d tenants", "search", "tenants", points, 10, map[int]float64{1_000: 1.3})
}

// addTenants creates tenants of one user.
func (s *scale) addTenants(server *installation.Server, count int) []installation.ServedTenant {
	s.Helper()
	all := make([]installation.ServedTenant, count)
	var wait sync.WaitGroup
	for first := range min(loaders, count) {
		wait.Go(func() {
			for i := first; i < count; i += loaders {
				all[i] = server.AddTenant(s.TB, installation.TenantOptions{Users: []string{"user"}})
			}
		})
	}
	wait.Wait()
	return all
}

// userUnits is the number of units of each user of an application.
const userUnits = 5

// users compares few and many users of an application in one tenant.
func (s *scale) users(sizes []int) {
	var points []point
	for _, size := range sizes {
		server, began := s.serve(installation.ServerOptions{}), time.Now()
		t := server.AddTenant(s.TB, installation.TenantOptions{Application: true, Partition: true})
		s.volume.load(s.TB, server, addUsers(s.TB, server, t.Tenant, size), true)
		s.fact(describe(s.TB, server, fmt.Sprintf("%d users", size), began))
		points = append(points, point{size, server, func(int) api {
			return api{url: server.URL, token: t.Key, http: s.http, user: fmt.Sprintf("user-%07d", 1+s.volume.IntN(size))}
		}})
	}
	s.search("users of the tenant", points)
	s.compare(0.95, "search p95, %d ÷ %d users", "search", "users of the tenant", points, 1_000, map[int]float64{1_000_000: 1.3})
	s.firstWrites(points)
	for _, p := range points {
		s.settle(p.server)
	}
	s.resident("users of the tenant", points)
}

// addUsers creates users of an application, as first writes do, without a transaction for each.
func addUsers(tb testing.TB, server *installation.Server, id tenant.ID, count int) []holder {
	tb.Helper()
	execute(tb, server, "alter table users disable trigger count_insert") // it would update one row for each user
	execute(tb, server, `insert into users (tenant_id, name, kind, memories, memory_seq)
		select $1, $2 || lpad(n::text, 7, '0'), 'application_user', $4, $4 from generate_series(1, $3::int) n`,
		id, tenant.StoredUser("user-"), count, userUnits)
	execute(tb, server, "alter table users enable trigger count_insert")
	execute(tb, server, "update usage set application_users = $2 where tenant_id = $1", id, count)
	holders := make([]holder, 0, count)
	found, err := server.Owner.Query(tb.Context(), "select id from users where tenant_id = $1 and kind = 'application_user' order by id", id)
	if err != nil {
		tb.Fatal(err)
	}
	for found.Next() {
		h := holder{tenant: id, count: userUnits}
		if err := found.Scan(&h.user); err != nil {
			tb.Fatal(err)
		}
		holders = append(holders, h)
	}
	if found.Err() != nil {
		tb.Fatal(found.Err())
	}
	return holders
}

// firstWrites compares the first write for a user, which creates the user, with the second.
func (s *scale) firstWrites(points []point) {
	s.Helper()
	s.alternate(points, func(p point, i int, measured bool) {
		user := p.user(i)
		user.user = fmt.Sprintf("new-%07d", i)
		for _, operation := range []string{"first write", "later write"} {
			if _, took := user.create(s.TB, s.volume.memory()); measured {
				s.report.row(operation, "users of the tenant", p.size).add(took)
			}
		}
	})
	for _, p := range points {
		target := ratio{Name: fmt.Sprintf("first write ÷ later write p50, %d users", p.size)}
		if p.size == 1_000_000 {
			target.AtMost = 1.5
		}
		s.report.compareAt(0.5, target, s.report.row("first write", "users of the tenant", p.size), s.report.row("later write", "users of the tenant", p.size))
	}
}

// compare adds the ratio of a quantile at each point to that at the base, or at the smallest.
func (s *scale) compare(quantile float64, name, operation, subject string, points []point, base int, atMost map[int]float64) {
	smallest := points[0].size
	for _, p := range points {
		if p.size == base {
			smallest = base
		}
	}
	for _, p := range points {
		if p.size > smallest {
			target := ratio{Name: fmt.Sprintf(name, p.size, smallest)}
			if smallest == base {
				target.AtMost = atMost[p.size]
			}
			s.report.compareAt(quantile, target, s.report.row(operation, subject, p.size), s.report.row(operation, subject, smallest))
		}
	}
}

func (s *scale) fact(text string) {
	s.Helper()
	s.Log(text)
	s.report.Facts = append(s.report.Facts, text)
}
