-- Migrations of all tenants to another embedding model (docs/adr/0020-embedding-generations.md).

-- +goose Up
create table embedding_migrations (
    id             bigint primary key generated always as identity,
    target_id      smallint not null references embedding_generations,
    phase          text not null default 'copying'
                   check (phase in ('copying', 'canary', 'completing', 'rolling back', 'completed', 'rolled back')),
    reason         text not null default '', -- why it is rolled back
    canary_percent integer not null check (canary_percent between 0 and 100), -- users served with the target during the canary
    canary_seconds bigint not null check (canary_seconds >= 0),
    rate           integer not null check (rate >= 0), -- texts per second; 0 without a limit
    forced         boolean not null default false,     -- complete it even if the target finds less
    probes         integer not null default 0,         -- comparisons behind the scores
    source_score   float8 not null default 0,          -- shares of the probes that find their text
    target_score   float8 not null default 0,
    started_at     timestamptz not null default now(),
    phase_at       timestamptz not null default now(), -- when the phase began
    heartbeat_at   timestamptz not null default now(), -- the latest progress
    finished_at    timestamptz
);
create unique index embedding_migrations_unfinished on embedding_migrations ((true)) where finished_at is null; -- at most one
comment on table embedding_migrations is 'Migrations to another embedding generation. One state machine, driven by a job';

create table embedding_targets (
    tenant_id    uuid primary key references tenants on delete cascade,
    generation   text not null,
    collection   text not null,
    partition    text not null,
    shared       boolean not null,
    partition_id bigint not null default 0, -- 0 until the vector store has created it
    cursor       bigint not null default 0, -- the last unit copied
    state        text not null default 'copying' check (state in ('copying', 'ready', 'cleaning')),
    unique (collection, partition)
);
comment on table embedding_targets is 'The placement of each tenant in the generation it migrates to. Cleaning: the tenant has migrated or stayed, and its other vectors are being deleted';

-- During a canary, a share of the users is served with the target; afterwards all are.
create or replace view user_placements with (security_invoker = true) as
select u.tenant_id, u.id as user_id, coalesce(n.collection, p.collection, '') as collection, coalesce(n.partition, p.partition, '') as partition,
    coalesce(n.shared, p.shared, false) as shared, coalesce(ng.id, g.id, a.id, 0)::smallint as generation_id
from users u
left join placements p on p.tenant_id = u.tenant_id
left join embedding_generations g on g.name = p.generation
left join embedding_generations a on a.active and p.tenant_id is null
left join embedding_migrations m on m.finished_at is null
    and (m.phase = 'completing' or m.phase = 'canary' and mod(u.id * 61, 100) < m.canary_percent)
left join embedding_targets n on n.tenant_id = u.tenant_id and n.state = 'ready' and m.id is not null
left join embedding_generations ng on ng.name = n.generation;
