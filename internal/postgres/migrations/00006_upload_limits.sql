-- The stored bytes of uploaded files, which are limited per user, tenant and installation.

-- +goose Up
alter table imports add column chunk_bytes bigint not null default 0 check (chunk_bytes >= 0); -- of the file, in import_chunks

update imports i set chunk_bytes = k.bytes
from (select tenant_id, user_id, import_id, sum(octet_length(data)) as bytes from import_chunks group by 1, 2, 3) k
where k.tenant_id = i.tenant_id and k.user_id = i.user_id and k.import_id = i.id;

-- upload_bytes returns the stored bytes of files: those of the transaction's user,
-- of its tenant, and of all tenants. The last sum needs all rows, so it runs as the
-- owner; it has no arguments, so a transaction sees no other user's or tenant's sum.
-- +goose StatementBegin
create function upload_bytes(out user_bytes bigint, out tenant_bytes bigint, out total_bytes bigint)
language sql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
    select coalesce(sum(i.chunk_bytes) filter (where i.tenant_id = s.tenant_id and i.user_id = s.user_id), 0)::bigint,
        coalesce(sum(i.chunk_bytes) filter (where i.tenant_id = s.tenant_id), 0)::bigint,
        coalesce(sum(i.chunk_bytes), 0)::bigint
    from (select nullif(current_setting('mnemo.tenant', true), '')::uuid as tenant_id,
        nullif(nullif(current_setting('mnemo.user', true), ''), '*')::bigint as user_id) s
    left join imports i on i.status in ('uploading', 'queued', 'running')
$$;
-- +goose StatementEnd
revoke all on function upload_bytes() from public;
