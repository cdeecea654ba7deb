-- name: FindApplied :many
-- The tenant of a resource, if its settings and quota are these.
select t.id from tenants t join quotas q on q.tenant_id = t.id
where t.resource = @resource and t.state = 'active'
    and (t.display_name, t.suspended, t.deletion_policy, t.isolation, t.token_overlap)
        is not distinct from (@display_name::text, @suspended::boolean, @deletion_policy::text, @isolation::text, @token_overlap::interval)
    and (q.memories, q.conversations, q.storage, q.users, q.requests_per_minute, q.list_tokens, q.user_memories, q.user_conversations)
        is not distinct from (@memories::bigint, @conversations::bigint, @storage::bigint, @users::bigint,
            @requests_per_minute::bigint, @list_tokens::bigint, @user_memories::bigint, @user_conversations::bigint);
