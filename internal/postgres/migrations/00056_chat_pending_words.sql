-- +goose NO TRANSACTION
-- +goose Up
-- PostgreSQL adds the words of new units to the index in bulk, when this many KiB of them wait. Four times as many need a quarter less
-- processor time of PostgreSQL per message, and add about 1 ms to a search for words among 20,000 units (docs/performance.md).
-- Each index is locked apart, because statements wait for it meanwhile.
-- +goose StatementBegin
do $$
declare
    part regclass;
begin
    for part in select inhrelid from pg_inherits where inhparent = 'units_chat_words'::regclass order by 1 loop
        perform set_config('lock_timeout', '2s', true);
        execute format('alter index %s set (gin_pending_list_limit = 512)', part);
        commit;
    end loop;
end $$;
-- +goose StatementEnd
