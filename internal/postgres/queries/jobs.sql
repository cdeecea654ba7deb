-- name: SetScope :exec
-- Sets whose rows the transaction sees; "*" is every user of the tenant.
select set_config('mnemo.tenant', @tenant::text, true), set_config('mnemo.user', @user_id::text, true);
