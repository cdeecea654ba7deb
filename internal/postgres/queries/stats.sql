-- name: BlockedConversations :one
select coalesce(sum(blocked), 0)::bigint from usage;

-- name: AuditBacklog :one
select b.records::bigint as records, b.age::float8 as age from audit_backlog() b;
