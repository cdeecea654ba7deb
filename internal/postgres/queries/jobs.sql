-- name: SetScope :exec
-- Sets the scope of the transaction; "*" means every user of the tenant.
select set_config('mnemo.tenant', @tenant::text, true), set_config('mnemo.user', @user_id::text, true);
