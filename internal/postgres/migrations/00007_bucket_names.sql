-- Names of buckets are told apart by a key that the server makes: lower() knows
-- neither composed characters nor all foldings. Rows of the binary of the
-- version before have none; buckets_name still holds those.

-- +goose Up
alter table buckets add column name_key text;
update buckets b set name_key = k.key || case when k.n > 1 then ' #' || b.id else '' end
from (select tenant_id, user_id, id, key, row_number() over (partition by tenant_id, user_id, key order by is_default desc, id) as n
    from (select tenant_id, user_id, id, is_default, lower(normalize(name, nfc)) as key from buckets) b) k
where b.tenant_id = k.tenant_id and b.user_id = k.user_id and b.id = k.id;
create unique index buckets_name_key on buckets (tenant_id, user_id, name_key);

-- +goose Down
drop index buckets_name_key;
alter table buckets drop column name_key;
