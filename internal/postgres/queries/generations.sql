-- name: FindGeneration :many
-- The generation, or one of the same name whose model is not known yet.
select id, (model is not null)::boolean as known from embedding_generations
where model = @model::text and revision = @revision and settings = @settings and dimensions = @dimensions
    or model is null and name = @name
order by model is null;

-- name: AdoptGeneration :exec
update embedding_generations set model = @model::text, revision = @revision, settings = @settings, dimensions = @dimensions where id = @id;

-- name: HasGenerationName :one
select exists (select from embedding_generations where name = @name);

-- name: InsertGeneration :one
insert into embedding_generations (name, model, revision, settings, dimensions)
values (@name, @model::text, @revision, @settings, @dimensions) returning id;

-- name: DeactivateUnused :exec
-- While no tenant has a placement, another generation can become the active one.
update embedding_generations set active = false where active and id <> @id and not exists (select from placements);

-- name: SetActive :exec
update embedding_generations g set active = true
where g.id = @id and not exists (select from embedding_generations o where o.active);

-- name: ActiveGeneration :many
select id, name, dimensions from embedding_generations where active;

-- name: ListUsedGenerations :many
-- The generations in which tenants are placed or, during a migration, may be served.
select g.id, g.name, coalesce(g.model, g.name) as model, g.revision, g.dimensions, count(*) as tenants
from (select tenant_id, generation from placements
    union select tenant_id, generation from embedding_targets where state <> 'cleaning') p
join embedding_generations g on g.name = p.generation group by g.id order by g.id;

-- name: GetFingerprint :one
select fingerprint from embedding_generations where id = @id;

-- name: SetFingerprint :exec
update embedding_generations set fingerprint = @fingerprint where id = @id and fingerprint is null;
