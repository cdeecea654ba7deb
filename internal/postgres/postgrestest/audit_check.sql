-- Rejects a transaction of the application role that changes users' data or access without an
-- audit record. Erasures of whole accounts, users and tenants have a record of their own.

create function test_note_audit() returns trigger language plpgsql as $$
begin
    perform set_config('mnemo.test_audited', 'true', true);
    return null;
end $$;
create trigger test_note_audit after insert on audit_pending for each statement execute function test_note_audit();

create function test_check_audit() returns trigger language plpgsql as $$
declare
    item jsonb := to_jsonb(coalesce(new, old));
begin
    if session_user <> 'mnemo_test_app' or current_setting('mnemo.test_audited', true) = 'true'
        or current_setting('mnemo.erasing', true) = 'account' then
        return null;
    end if;
    if not exists (select from tenants t where t.id = (item ->> 'tenant_id')::uuid and t.state <> 'purging')
        or exists (select from users u where u.id = (item ->> 'user_id')::bigint and u.purging) then
        if tg_op = 'DELETE' then
            return null;
        end if;
    end if;
    if tg_table_name = 'oauth_grants' and not exists (select from oauth_clients c where c.id = item ->> 'client_id') then
        return null;
    end if;
    raise exception 'no audit record for % of %', tg_op, tg_table_name;
end $$;

revoke all on function test_note_audit(), test_check_audit() from public;

create constraint trigger test_audit after insert or delete or update of text, bucket_id on memories
    deferrable initially deferred for each row execute function test_check_audit();
create constraint trigger test_audit after insert or delete on merged_memories
    deferrable initially deferred for each row execute function test_check_audit();
-- A default bucket exists without anybody creating it.
create constraint trigger test_audit after insert or update of name, description on buckets
    deferrable initially deferred for each row when (not new.is_default) execute function test_check_audit();
create constraint trigger test_audit_delete after delete on buckets
    deferrable initially deferred for each row when (not old.is_default) execute function test_check_audit();
create constraint trigger test_audit after insert or delete or update of title, message_count, pinned on conversations
    deferrable initially deferred for each row execute function test_check_audit();
create constraint trigger test_audit_status after update of status on conversations
    deferrable initially deferred for each row when (old.status = 'excluded' and new.status <> 'excluded' or new.status = 'excluded' and old.status <> 'excluded')
    execute function test_check_audit();
create constraint trigger test_audit after update of status on imports
    deferrable initially deferred for each row when (old.status = 'uploading' and new.status = 'queued') execute function test_check_audit();
create constraint trigger test_audit after insert or update of expires_at on tokens
    deferrable initially deferred for each row execute function test_check_audit();
create constraint trigger test_audit after insert or update of expires_at on user_tokens
    deferrable initially deferred for each row execute function test_check_audit();
create constraint trigger test_audit after insert on sessions
    deferrable initially deferred for each row execute function test_check_audit();
create constraint trigger test_audit_end after delete on sessions
    deferrable initially deferred for each row when (old.expires_at > now()) execute function test_check_audit();
create constraint trigger test_audit after insert on platform_sessions
    deferrable initially deferred for each row execute function test_check_audit();
create constraint trigger test_audit after insert or delete on oauth_grants -- not after the expiry of the client
    deferrable initially deferred for each row execute function test_check_audit();
create constraint trigger test_audit after update of used on oauth_secrets
    deferrable initially deferred for each row execute function test_check_audit();
create constraint trigger test_audit after insert or update of email, active, purging, password_hash on users
    deferrable initially deferred for each row execute function test_check_audit();
create constraint trigger test_audit after insert or delete on tenants
    deferrable initially deferred for each row execute function test_check_audit();
create constraint trigger test_audit_update after update on tenants
    deferrable initially deferred for each row
    when ((old.resource, old.cluster, old.state, old.suspended, old.display_name) is distinct from
        (new.resource, new.cluster, new.state, new.suspended, new.display_name)) execute function test_check_audit();
create constraint trigger test_audit after update on quotas
    deferrable initially deferred for each row execute function test_check_audit();
create constraint trigger test_audit after insert or delete on oidc_domains
    deferrable initially deferred for each row execute function test_check_audit();
create constraint trigger test_audit after insert or delete or update of url, events, secret on webhooks
    deferrable initially deferred for each row execute function test_check_audit();
