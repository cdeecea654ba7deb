-- +goose Up

-- Stored answers contained the texts of similar memories, which outlived the deletion of these memories. A retry of such a request
-- reports no similar memories.
update idempotency_keys set answer = answer - 'similar' where answer ? 'similar';
