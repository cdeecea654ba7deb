-- Users of an identity provider: removal of single users, the time of their
-- authentication, and the end of tokens that were created without one.

-- +goose Up
create table removed_users (
    tenant_id     uuid not null references tenants on delete cascade,
    email         text not null,    -- lower case
    administrator boolean not null, -- by `mnemo users remove`; otherwise by the Tenant resource
    removed_at    timestamptz not null default now(),
    primary key (tenant_id, email, administrator)
);
comment on table removed_users is 'Addresses whose users of the identity provider have no access to the tenant';

alter table sessions add column authenticated_at timestamptz;
comment on column sessions.authenticated_at is 'When the user last proved their identity. Null if the identity provider does not tell';

-- Tokens of these users end 90 days after their creation, but not without notice.
update tokens t set expires_at = greatest(t.created_at + interval '90 days', now() + interval '7 days')
from users u where u.tenant_id = t.tenant_id and u.id = t.user_id and u.issuer is not null and t.expires_at is null;
