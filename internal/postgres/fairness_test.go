package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/queue"
)

// The end of a job gives turns to some tenants only, however many have queued jobs, and all of them get one.
func TestPromoteJobsOfFewTenants(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	const tenants, most = 1000, 100
	b.fillJobs(t, tenants)
	turns := 0
	for calls := 0; turns < tenants; calls++ {
		if err := b.PromoteJobs(t.Context(), queue.Backlog, 1, 0); err != nil {
			t.Fatal(err)
		}
		var jobs, holders int
		if err := b.owner.QueryRow(t.Context(), "select count(*), count(distinct args ->> 'tenant') from river_job where priority = $1",
			queue.Turn).Scan(&jobs, &holders); err != nil {
			t.Fatal(err)
		}
		if jobs != holders {
			t.Fatalf("%d jobs of %d tenants have a turn, want one of each", jobs, holders)
		}
		if jobs-turns > most {
			t.Fatalf("%d tenants get a turn when a job ends, want at most %d", jobs-turns, most)
		}
		if turns = jobs; calls > 1000 {
			t.Fatalf("%d of %d tenants had a turn after %d jobs", turns, tenants, calls)
		}
	}
}

// fillJobs adds three queued jobs of each of a number of tenants.
func (b *testBundle) fillJobs(t testing.TB, tenants int) {
	t.Helper()
	exec(t, b.owner, `insert into river_job (state, queue, kind, args, max_attempts, priority)
		select 'available', $1, 'index.sync', jsonb_build_object('tenant', i.id), 10, $2
		from (select gen_random_uuid() as id from generate_series(1, $3::int)) i, generate_series(1, 3)`, queue.Backlog, queue.Waiting, tenants)
}

// It reads the jobs of these tenants only, also without statistics: an outage queues jobs faster than they are collected.
func TestPromoteJobsReadsFewRows(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	exec(t, b.owner, "alter table river_job set (autovacuum_enabled = off)")
	const tenants, most = 5000, 500
	b.fillJobs(t, tenants)
	conn := session(t, d, b.users[0])
	exec(t, conn, strings.Replace(postgres.PromotePlan, "set local", "set", 1))
	exec(t, conn, "prepare promote (text, int, smallint, smallint, bigint, int) as "+postgres.PromoteJobs)
	forEachPlan(t, b, conn, "river_job", func(plans string) {
		plan := explain(t, conn, fmt.Sprintf("execute promote ('%s', 1, %d, %d, 0, 100)", queue.Backlog, queue.Turn, queue.Waiting))
		if node, rows := plan.most(); rows > most {
			t.Errorf("%s: %s of %s reads %v rows, want at most %d", plans, node.Type, node.Relation, rows, most)
		}
	})
}
