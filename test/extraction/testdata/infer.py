# mem0ai's MemoryClient with inference: facts are extracted in the background and then found.
import os
import time

from mem0 import MemoryClient

client = MemoryClient(api_key=os.environ["MNEMO_API_KEY"], host=os.environ["MNEMO_URL"] + "/mem0")


def infer(messages, **options):
    added = client.add(messages, **options)
    assert added["status"] == "PENDING" and "results" not in added, added
    deadline = time.monotonic() + 120
    while True:
        event = client.client.get(f"/v1/event/{added['event_id']}/").raise_for_status().json()
        if event["status"] != "PENDING":
            assert event["status"] == "SUCCEEDED", event
            return
        assert time.monotonic() < deadline, event
        time.sleep(0.2)


infer([
    {"role": "user", "content": "Hello there! I painted the barn green17. How are you?"},
    {"role": "assistant", "content": "Well, thanks. I bought a boat. Anything else?"},
    {"role": "user", "content": "I adopted two goats from a farm near Bergen."},
], user_id="dana", infer=True, metadata={"topic": "farm"})
facts = ["The user adopted two goats from a farm near Bergen.", "The user painted the barn green17."]
stored = client.get_all(filters={"user_id": "dana"})["results"]
assert sorted(m["memory"] for m in stored) == facts, stored
assert all(m["user_id"] == "dana" and m["metadata"] == {"topic": "farm"} for m in stored), stored
for query, want in {"Which animals from Bergen?": facts[0], "blue17": facts[1]}.items():  # by words, by meaning
    found = client.search(query, filters={"user_id": "dana"})["results"]
    assert found and found[0]["memory"] == want, (query, found)

# Inference is the default, and small talk contains no facts.
infer("I collect stamps.", user_id="erik")
infer([{"role": "user", "content": "Hello!"}], user_id="erik")
assert [m["memory"] for m in client.get_all(filters={"user_id": "erik"})["results"]] == ["The user collect stamps."]
assert len(client.get_all(filters={"user_id": "dana"})["results"]) == 2
