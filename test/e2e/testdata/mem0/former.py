# mem0ai 1, which calls the earlier versions of the routes.
import importlib.metadata
import os

import mem0
from mem0 import MemoryClient

assert "former" in mem0.__file__, mem0.__file__
client = MemoryClient(api_key=os.environ["MNEMO_API_KEY"], host=os.environ["MNEMO_URL"] + "/mem0")
added = client.add([{"role": "user", "content": "Carol collects stamps."}], user_id="carol", infer=False, version="v2")
memory = added["results"][0]["id"]
assert [m["id"] for m in client.search("What does Carol collect?", filters={"user_id": "carol"})["results"]] == [memory]
assert [m["id"] for m in client.get_all(filters={"user_id": "carol"})["results"]] == [memory]
assert client.get_all(filters={"user_id": "carol"}, page=1, page_size=5)["count"] == 1
assert client.update(memory, text="Carol collects coins.")["memory"] == "Carol collects coins."
assert len(client.history(memory)) == 2
client.delete_users(user_id="carol")
assert client.get_all(filters={"user_id": "carol"})["results"] == []
