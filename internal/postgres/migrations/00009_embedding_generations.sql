-- Which model computed each vector, so that vectors of different models are never compared.

-- +goose Up
create table embedding_generations (
    id          smallint primary key generated always as identity,
    name        text not null unique, -- the prefix of the names of its collections in the vector store
    model       text,                 -- null until a server with this name and length starts
    revision    text not null default '', -- checksum of the model's file, or set by the administrator
    settings    text not null default '', -- how texts become vectors: prefixes, pooling
    dimensions  integer not null,
    active      boolean not null default false, -- new tenants use this one
    fingerprint bytea, -- the vector of a fixed text: another one means that the endpoint's model was replaced
    created_at  timestamptz not null default now()
);
create unique index embedding_generations_active on embedding_generations (active) where active;
comment on table embedding_generations is 'The embedding models whose vectors are stored. Vectors of two generations are not comparable';

-- Models used so far, the most used first: it has the id 1.
insert into embedding_generations (name, dimensions, active)
select generation, coalesce(substring(generation from '_([0-9]+)$')::integer, 0), row_number() over (order by count(*) desc, generation) = 1
from placements group by generation order by count(*) desc, generation;

-- A unit has two vectors while its tenant migrates to another generation. The default
-- applies to vectors from before, and to those that the previous release still writes.
alter table units
    add column generation_id      smallint default 1, -- of embedding
    add column next_embedding     bytea,
    add column next_generation_id smallint;           -- of next_embedding
update units u set generation_id = g.id
from placements p join embedding_generations g on g.name = p.generation
where p.tenant_id = u.tenant_id and u.embedding is not null and g.id <> 1;

-- The placement and the generation that serve each user. Generation 0 if no server has
-- started yet; no collection before the tenant has a placement.
create view user_placements with (security_invoker = true) as
select u.tenant_id, u.id as user_id, coalesce(p.collection, '') as collection, coalesce(p.partition, '') as partition,
    coalesce(p.shared, false) as shared, coalesce(g.id, a.id, 0)::smallint as generation_id
from users u
left join placements p on p.tenant_id = u.tenant_id
left join embedding_generations g on g.name = p.generation
left join embedding_generations a on a.active and p.tenant_id is null;
