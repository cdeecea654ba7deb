-- An insertion that is refused fails, so that it and the commit need one round trip.

-- +goose Up
-- +goose StatementBegin
create function require_created(created boolean) returns void language plpgsql as $$
begin
    if not created then
        raise exception 'not created' using errcode = 'MN001';
    end if;
end $$;
-- +goose StatementEnd
revoke execute on function require_created from public;
