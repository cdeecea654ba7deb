-- name: FindUsers :many
-- By name, which is unique, or else by email address.
select u.id from users u where u.tenant_id = @tenant_id and u.kind <> 'application' and (u.name = @name or u.email = @name
    and not exists (select from users o where o.tenant_id = @tenant_id and o.name = @name));

-- name: Pseudonym :one
select audit_id from users where tenant_id = @tenant_id and id = @id;
