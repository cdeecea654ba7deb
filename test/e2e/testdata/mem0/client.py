# mem0ai's MemoryClient with a user's token: every method, and the filters.
import os

from mem0 import MemoryClient
from mem0.exceptions import AuthenticationError, MemoryNotFoundError, ValidationError

HOST = os.environ["MNEMO_URL"] + "/mem0"
client = MemoryClient(api_key=os.environ["MNEMO_API_KEY"], host=HOST)


def raises(kind, text, call):
    try:
        call()
    except kind as e:
        assert text in str(e), e
        return
    raise AssertionError(f"no {kind.__name__}")


def texts(found):
    return sorted(m["memory"] for m in found["results"])


raises(ValueError, "a valid token is required", lambda: MemoryClient(api_key="wrong", host=HOST))

# add
messages = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Alice prefers the window seat on trains."},
    {"role": "assistant", "content": "Noted: a window seat for Alice."},
]
added = client.add(messages, user_id="alice", agent_id="planner", run_id="run-1", app_id="travel", metadata={"year": 2025, "topic": "trains"}, infer=False)
assert [r["event"] for r in added["results"]] == ["ADD", "ADD"], added
window = added["results"][0]["id"]
again = client.add(messages[1], user_id="alice", agent_id="planner", run_id="run-1", app_id="travel", metadata={"topic": "trains", "year": 2025}, infer=False)
assert [(r["id"], r["event"]) for r in again["results"]] == [(window, "NONE")], again
bob = client.add("Bob prefers the window seat on trains.", user_id="bob", metadata={"year": 2023}, infer=False)["results"][0]["id"]
anna = client.add("My favourite colour is green.", user_id="anna", infer=False)["results"][0]["id"]
# Another person's statement neither replaces Anna's nor is a duplicate of it.
ben = client.add("My favourite colour is red.", user_id="ben", infer=False)["results"][0]["id"]
same = client.add("My favourite colour is green.", user_id="ben", infer=False)["results"][0]
assert same["event"] == "ADD" and same["id"] != anna, same
client.delete(same["id"])
raises(ValidationError, "expiration_date is not supported", lambda: client.add("x", user_id="alice", expiration_date="2030-01-01"))

# get, search
memory = client.get(window)
assert memory["memory"] == messages[1]["content"], memory
assert (memory["user_id"], memory["agent_id"], memory["run_id"], memory["app_id"]) == ("alice", "planner", "run-1", "travel"), memory
assert memory["metadata"] == {"year": 2025, "topic": "trains"}, memory
raises(MemoryNotFoundError, "memory not found", lambda: client.get("0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e07"))
found = client.search("Where does she like to sit?", filters={"user_id": "alice"}, top_k=1)
assert found["results"][0]["user_id"] == "alice" and 0 <= found["results"][0]["score"] <= 1, found
assert texts(client.search("seat on trains", filters={"user_id": "bob"})) == ["Bob prefers the window seat on trains."]
assert client.search("seat on trains", filters={"user_id": "nobody"})["results"] == []
assert texts(client.search("favourite colour", filters={"user_id": "anna"})) == ["My favourite colour is green."]

# get_all with filters
everything = texts(client.get_all())
assert len(everything) == 5, everything
window_text, noted, bob_text, green, red = messages[1]["content"], messages[2]["content"], "Bob prefers the window seat on trains.", "My favourite colour is green.", "My favourite colour is red."
for filters, want in [
    ({"user_id": "alice"}, [window_text, noted]),
    ({"AND": [{"user_id": "alice"}, {"metadata": {"year": {"gte": 2025}}}]}, [window_text, noted]),
    ({"OR": [{"user_id": "bob"}, {"user_id": "anna"}]}, [bob_text, green]),
    ({"NOT": [{"user_id": {"in": ["alice", "bob"]}}]}, [green, red]),
    ({"user_id": {"contains": "b"}}, [bob_text, red]),
    ({"agent_id": "*"}, [window_text, noted]),
    ({"AND": [{"user_id": "*"}, {"run_id": {"ne": "run-1"}}]}, [bob_text, green, red]),
    ({"metadata": {"year": {"lt": 2025}}}, [bob_text]),
    ({"metadata": {"topic": "trains"}}, [window_text, noted]),
    ({"created_at": {"gte": "2020-01-01", "lte": "2020-12-31"}}, []),
    ({"app_id": "travel"}, [window_text, noted]),
]:
    assert texts(client.get_all(filters=filters)) == sorted(want), filters
raises(ValidationError, "filters.categories is not supported", lambda: client.get_all(filters={"categories": {"in": ["x"]}}))
pages = [client.get_all(filters={"user_id": "*"}, page=page, page_size=2) for page in (1, 2, 3)]
assert sorted(m["memory"] for p in pages for m in p["results"]) == everything, pages
assert [p["count"] for p in pages] == [5, 5, 5] and pages[2]["next"] is None and pages[0]["previous"] is None, pages

# update, history, batch
updated = client.update(window, text="Alice prefers the aisle seat on trains.", metadata={"year": 2026})
assert updated["memory"] == "Alice prefers the aisle seat on trains." and updated["metadata"] == {"year": 2026} and updated["user_id"] == "alice", updated
history = client.history(window)
assert [(h["event"], h["old_memory"], h["new_memory"]) for h in history] == [
    ("ADD", None, window_text), ("UPDATE", window_text, "Alice prefers the aisle seat on trains.")], history
client.batch_update([{"memory_id": window, "text": "Alice likes tea."}, {"memory_id": bob, "text": "Bob likes tea."}])
assert [client.get(m)["memory"] for m in (window, bob)] == ["Alice likes tea.", "Bob likes tea."]
client.batch_delete([{"memory_id": bob}])
raises(MemoryNotFoundError, "memory not found", lambda: client.get(bob))

# entities
entities = {(e["type"], e["name"]): e["total_memories"] for e in client.users()["results"]}
assert entities == {("user", "alice"): 2, ("user", "anna"): 1, ("user", "ben"): 1, ("agent", "planner"): 2, ("app", "travel"): 2, ("run", "run-1"): 2}, entities
client.delete_users(agent_id="planner")
assert client.get_all(filters={"user_id": "alice"})["results"] == []
raises(ValidationError, "one of user_id", lambda: client.delete_all())
client.delete_all(user_id="anna")
client.delete(ben)
assert client.get_all()["count"] == 0
client.add("A name with a slash.", user_id="team/a b", infer=False)
client.add("It belongs to three entities.", user_id="alice", agent_id="planner", run_id="run-2", infer=False)
client.reset()
assert client.users()["results"] == []
