-- The triggers, by function. To remove one, replace it with `drop trigger if exists`.
--
-- A copy of a tenant from another database (mnemo.copying) contains the rows that triggers after insert derive.

-- Parts of memories and conversations.
create or replace trigger delete_parts after delete on memories referencing old table as deleted
    for each statement execute function delete_parts();
create or replace trigger delete_parts after delete on merged_memories referencing old table as deleted
    for each statement execute function delete_parts();
create or replace trigger delete_parts after delete on conversations referencing old table as deleted
    for each statement execute function delete_parts();

-- Erasures of tenants and users.
create or replace trigger record_purge after update on tenants for each row
    when (new.state = 'purging' and old.state <> 'purging') execute function record_tenant_erasure();
create or replace trigger record_delete after delete on tenants for each row
    when (old.state <> 'purging') execute function record_tenant_erasure();
create or replace trigger record_purge after update on users for each row
    when (new.purging and not old.purging) execute function record_user_erasure('user');
create or replace trigger record_delete after delete on users for each row
    when (not old.purging) execute function record_user_erasure('user');
create or replace trigger record_deactivation after update on users for each row
    when (old.active and not new.active and not new.purging) execute function record_user_erasure('access');
create or replace trigger record_password after update on users for each row
    when (old.password_hash is distinct from new.password_hash and old.password_hash is not null)
    execute function record_user_erasure('password');

-- Erasures of memories, conversations and buckets.
create or replace trigger record_delete after delete on memories referencing old table as deleted
    for each statement execute function record_object_erasures('memory');
create or replace trigger record_delete after delete on merged_memories referencing old table as deleted
    for each statement execute function record_object_erasures('memory');
create or replace trigger record_delete after delete on conversations referencing old table as deleted
    for each statement execute function record_object_erasures('conversation');
create or replace trigger record_delete after delete on buckets referencing old table as deleted
    for each statement execute function record_object_erasures('bucket');
create or replace trigger record_delete after delete on deletions referencing old table as deleted
    for each statement execute function record_final_deletions();

-- The end of tokens, sessions and OAuth grants.
create or replace trigger record_revocation after update on tokens for each row
    when (new.expires_at is not null and new.expires_at is distinct from old.expires_at)
    execute function record_token_revocation();
create or replace trigger record_revocation after update on user_tokens for each row
    when (new.expires_at is not null and new.expires_at is distinct from old.expires_at)
    execute function record_token_revocation();
create or replace trigger record_delete after delete on sessions for each row execute function record_access_end('session');
create or replace trigger record_delete after delete on oauth_grants for each row execute function record_access_end('grant');
create or replace trigger record_use after update on oauth_secrets for each row
    when (new.used and not old.used) execute function record_access_end('secret');

-- Counters of application users.
create or replace trigger count_insert after insert on users for each row
    when (new.kind = 'application_user' and new.active and current_setting('mnemo.copying', true) is distinct from 'on')
    execute function count_application_users();
create or replace trigger count_end after update on users for each row
    when (old.kind = 'application_user' and old.active and not new.active) execute function count_application_users();
create or replace trigger count_delete after delete on users for each row
    when (old.kind = 'application_user' and old.active) execute function count_application_users();

-- Metering.
create or replace trigger begin_metering after insert on usage for each row
    when (current_setting('mnemo.copying', true) is distinct from 'on')
    execute function usage_begin();
create or replace trigger close_day before update on usage for each row
    when (old.metered_on < (clock_timestamp() at time zone 'utc')::date
        and (old.storage, old.embedded_tokens) is distinct from (new.storage, new.embedded_tokens))
    execute function usage_close();
create or replace trigger end_metering before delete on usage for each row execute function usage_close();
