-- People who sign in with an identity provider and are not listed.

-- +goose Up
alter table users add column issuer text, add column subject text,
    add constraint users_person_check check ((issuer is null) = (subject is null));
create unique index users_person on users (tenant_id, issuer, subject) where issuer is not null;

-- Whose people those of a domain are, by the provider that vouches for them.
create table oidc_domains (
    issuer    text not null,
    domain    text not null, -- lower case
    tenant_id uuid not null references tenants on delete cascade,
    primary key (issuer, domain)
);
create index oidc_domains_tenant on oidc_domains (tenant_id);

-- +goose Down
drop table oidc_domains;
drop index users_person;
delete from users where issuer is not null;
alter table users drop constraint users_person_check, drop column subject, drop column issuer;
