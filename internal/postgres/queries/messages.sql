-- name: ListMessages :many
select seq, external_id, sender, text, tokens, created_at from messages
where tenant_id = @tenant_id and user_id = @user_id and conversation_id = @conversation_id
order by seq;

-- name: InsertMessages :exec
insert into messages (tenant_id, user_id, conversation_id, seq, external_id, sender, text, tokens, created_at)
select @tenant_id, @user_id, @conversation_id, m.seq, m.external_id, m.sender, m.text, m.tokens, m.created_at
from (select unnest(@seqs::int[]) as seq, unnest(@external_ids::text[]) as external_id, unnest(@senders::text[]) as sender,
    unnest(@texts::text[]) as text, unnest(@tokens::int[]) as tokens, unnest(@times::timestamptz[]) as created_at) m;

-- name: ReplaceMessages :exec
update messages o set sender = m.sender, text = m.text, tokens = m.tokens, created_at = m.created_at
from (select unnest(@seqs::int[]) as seq, unnest(@senders::text[]) as sender,
    unnest(@texts::text[]) as text, unnest(@tokens::int[]) as tokens, unnest(@times::timestamptz[]) as created_at) m
where o.tenant_id = @tenant_id and o.user_id = @user_id and o.conversation_id = @conversation_id and o.seq = m.seq;

-- name: DeleteMessageUnits :many
delete from units where tenant_id = @tenant_id and user_id = @user_id and conversation_id = @conversation_id
    and seq = any(@seqs::int[])
returning id;

-- name: InsertChatUnits :many
insert into units (tenant_id, user_id, kind, group_id, conversation_id, seq, span_start, span_end, active, tsv, embedding)
select @tenant_id, @user_id, 2, p.group_id, @conversation_id::uuid, p.seq, p.span_start, p.span_end, @active::boolean,
    to_tsvector('english', p.lexical), p.embedding
from (select unnest(@groups::bigint[]) as group_id, unnest(@seqs::int[]) as seq, unnest(@starts::int[]) as span_start,
    unnest(@ends::int[]) as span_end, unnest(@lexicals::text[]) as lexical, unnest(@embeddings::bytea[]) as embedding) p
returning id;

-- name: Passages :many
-- The messages around each place that is still there, with its conversation.
select p.n::int as n, p.seq::int as place_seq, sqlc.embed(c), m.seq, m.external_id, m.sender, m.text, m.tokens, m.created_at
from (select generate_subscripts(@ids::uuid[], 1) as n, unnest(@ids::uuid[]) as id, unnest(@seqs::int[]) as seq) p
join conversations c on c.tenant_id = @tenant_id and c.user_id = @user_id and c.id = p.id and c.status = 'active'
join messages m on m.tenant_id = c.tenant_id and m.user_id = c.user_id and m.conversation_id = c.id
    and m.seq between p.seq - @around::int and p.seq + @around::int
order by p.n, m.seq;
