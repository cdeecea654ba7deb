# mem0ai's AsyncMemoryClient with the key of an application: user_id names its user.
import asyncio
import os

from mem0 import AsyncMemoryClient
from mem0.exceptions import ValidationError


async def main():
    client = AsyncMemoryClient(api_key=os.environ["MNEMO_APPLICATION_KEY"], host=os.environ["MNEMO_URL"] + "/mem0")
    ids = {}
    for user in ("ann", "ben/2"):
        added = await client.add(f"The favourite city of {user} is Lisbon.", user_id=user, infer=False)
        ids[user] = added["results"][0]["id"]
    for user in ids:
        for filters in ({"user_id": user}, {"AND": [{"user_id": user}]}):
            page = await client.get_all(filters=filters)
            assert [(m["id"], m["user_id"]) for m in page["results"]] == [(ids[user], user)], page
        found = await client.search("favourite city", filters={"user_id": user})
        assert [m["id"] for m in found["results"]] == [ids[user]], found
    # A memory is found without its user.
    assert (await client.get(ids["ann"]))["user_id"] == "ann"
    await client.update(ids["ann"], text="The favourite city of ann is Porto.")
    assert len(await client.history(ids["ann"])) == 2
    try:
        await client.get_all(filters={"OR": [{"user_id": "ann"}, {"user_id": "ben/2"}]})
        raise AssertionError("two users are accepted")
    except ValidationError as e:
        assert "exactly one user" in str(e), e
    await client.delete_users(user_id="ben/2")
    assert (await client.get_all(filters={"user_id": "ben/2"}))["count"] == 0
    await client.batch_delete([{"memory_id": ids["ann"]}])
    assert (await client.get_all(filters={"user_id": "ann"}))["count"] == 0


asyncio.run(main())
