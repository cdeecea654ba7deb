package postgrestest

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// counters selects every counter with the number of rows that it counts. The rows of a
// tenant that is being purged are deleted without counting.
const counters = `
	select 'usage of ' || u.tenant_id, array[u.memories, u.conversations, u.blocked, u.storage], array[
		(select count(*) from memories m where m.tenant_id = u.tenant_id) + (select count(*) from merged_memories g where g.tenant_id = u.tenant_id),
		(select count(*) from conversations c where c.tenant_id = u.tenant_id and status = 'active'),
		(select count(*) from conversations c where c.tenant_id = u.tenant_id and status = 'blocked'),
		(select coalesce(sum(octet_length(text)), 0) from memory_versions v where v.tenant_id = u.tenant_id)
			+ (select coalesce(sum(attribute_bytes), 0) from memories a where a.tenant_id = u.tenant_id)
			+ (select coalesce(sum(attribute_bytes), 0) from merged_memories g where g.tenant_id = u.tenant_id)
			+ (select coalesce(sum(octet_length(text)), 0) from messages m where m.tenant_id = u.tenant_id)]::bigint[]
	from usage u where u.tenant_id not in (select id from tenants where state = 'purging')
	union all select 'users of applications of ' || u.tenant_id, array[u.application_users],
		(select array[count(*)] from users x where x.tenant_id = u.tenant_id and x.kind = 'application_user' and x.active)
	from usage u where u.tenant_id not in (select id from tenants where state = 'purging')
	union all select 'user ' || u.name, array[u.memories, u.conversations], array[
		(select count(*) from memories m where m.tenant_id = u.tenant_id and m.user_id = u.id)
			+ (select count(*) from merged_memories g where g.tenant_id = u.tenant_id and g.user_id = u.id),
		(select count(*) from conversations c where c.tenant_id = u.tenant_id and c.user_id = u.id and status = 'active')]
	from users u where u.tenant_id not in (select id from tenants where state = 'purging')
	union all select 'bucket ' || b.name, array[b.memories], array[
		(select count(*) from memories m where m.tenant_id = b.tenant_id and m.user_id = b.user_id and m.bucket_id = b.id)]
	from buckets b where b.tenant_id not in (select id from tenants where state = 'purging')
	union all select 'conversation ' || c.external_id, array[c.message_count, c.token_count, c.bytes],
		(select array[count(*), coalesce(sum(tokens), 0), coalesce(sum(octet_length(text)), 0)] from messages m
			where m.tenant_id = c.tenant_id and m.user_id = c.user_id and m.conversation_id = c.id)
	from conversations c where c.tenant_id not in (select id from tenants where state = 'purging')
	union all select 'wrongly active units of ' || c.external_id, array[0], (select array[count(*)] from units u
		where u.tenant_id = c.tenant_id and u.user_id = c.user_id and u.conversation_id = c.id and u.active <> (c.status = 'active'))
	from conversations c where c.tenant_id not in (select id from tenants where state = 'purging')
	union all select 'parts without a memory or conversation', array[0, 0, 0], array[
		(select count(*) from merged_memories v where not exists (
			select from memories m where m.tenant_id = v.tenant_id and m.user_id = v.user_id and m.id = v.merged_into)
			and not exists (select from merged_memories m where m.tenant_id = v.tenant_id and m.user_id = v.user_id and m.id = v.merged_into)),
		(select count(*) from memory_versions v where not exists (
			select from memories m where m.tenant_id = v.tenant_id and m.user_id = v.user_id and m.id = v.memory_id)
			and not exists (select from merged_memories m where m.tenant_id = v.tenant_id and m.user_id = v.user_id and m.id = v.memory_id)),
		(select count(*) from units u where not exists (
			select from memories m where m.tenant_id = u.tenant_id and m.user_id = u.user_id and m.id = u.memory_id)
			and not exists (select from conversations c where c.tenant_id = u.tenant_id and c.user_id = u.user_id and c.id = u.conversation_id))]
	union all select 'file of import ' || i.id, array[i.chunk_bytes],
		(select array[coalesce(sum(octet_length(k.data)), 0)] from import_chunks k
			where k.tenant_id = i.tenant_id and k.user_id = i.user_id and k.import_id = i.id)
	from imports i where i.tenant_id not in (select id from tenants where state = 'purging')`

// WrongCounters compares every counter with the rows it counts, in one snapshot, and
// describes those that differ. The pool must belong to the owner of the database.
func WrongCounters(ctx context.Context, owner *pgxpool.Pool) ([]string, error) {
	rows, err := owner.Query(ctx, counters)
	if err != nil {
		return nil, fmt.Errorf("compare counters: %w", err)
	}
	type counter struct {
		Name           string
		Stored, Actual []int64
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[counter])
	if err != nil {
		return nil, fmt.Errorf("compare counters: %w", err)
	}
	var wrong []string
	for _, c := range all {
		if !slices.Equal(c.Stored, c.Actual) {
			wrong = append(wrong, fmt.Sprintf("counters of %s are %v, want %v", c.Name, c.Stored, c.Actual))
		}
	}
	return wrong, nil
}
