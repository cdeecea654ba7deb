-- The location of the vectors and the generation that serve each user: during a canary of a migration to another
-- embedding generation, a share of the users is served with the target; afterwards all are. Generation 0 if no server
-- has started yet; no collection before the tenant has a placement.
create or replace view user_placements with (security_invoker = true) as
select u.tenant_id, u.id as user_id, coalesce(n.collection, p.collection, '') as collection, coalesce(n.partition, p.partition, '') as partition,
    coalesce(n.shared, p.shared, false) as shared, coalesce(ng.id, g.id, a.id, 0)::smallint as generation_id,
    coalesce(n.cell, p.cell, '') as cell
from users u
left join placements p on p.tenant_id = u.tenant_id
left join embedding_generations g on g.name = p.generation
left join embedding_generations a on a.active and p.tenant_id is null
left join embedding_migrations m on m.finished_at is null
    and (m.phase = 'completing' or m.phase = 'canary' and mod(u.id * 61, 100) < m.canary_percent)
left join embedding_targets n on n.tenant_id = u.tenant_id and n.state = 'ready' and m.id is not null
left join embedding_generations ng on ng.name = n.generation;
