"""MnemoStore with langgraph and the server at MNEMO_URL."""

import asyncio
import unittest

from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore

from mnemo import AsyncMnemo, Mnemo, MnemoError
from mnemo.integrations.langgraph import MnemoStore

ALICE, BOB = ("users", "Alice"), ("users", "alice")


class LangGraphTest(unittest.TestCase):
    def setUp(self):
        self.client = self.enterContext(Mnemo())
        self.store = MnemoStore(self.client)
        self.addCleanup(self.clear)

    def clear(self):
        for bucket in self.client.buckets.list():
            if bucket.name.startswith("langgraph/"):
                for memory in list(self.client.memories.list(bucket=bucket.id)):
                    self.client.memories.delete(memory.id)
                self.client.buckets.delete(bucket.id)

    def test_items(self):
        self.store.put(ALICE, "pet", {"text": "Has a grey cat called Miso", "age": 3})
        self.store.put(ALICE, "pet", {"text": "Has a grey cat called Miso", "age": 4})
        self.store.put(BOB, "pet", {"text": "Has a dog"})
        item = self.store.get(ALICE, "pet")
        self.assertEqual((item.key, item.namespace, item.value["age"]), ("pet", ALICE, 4))
        self.assertGreater(item.updated_at, item.created_at)
        self.assertEqual(self.store.get(BOB, "pet").value, {"text": "Has a dog"})
        self.assertIsNone(self.store.get(ALICE, "car"))
        self.store.delete(ALICE, "pet")
        self.assertIsNone(self.store.get(ALICE, "pet"))

    def test_search(self):
        self.store.put(ALICE, "food", {"text": "Loves spicy ramen", "rank": 1})
        self.store.put(ALICE, "work", {"text": "Works as a marine biologist", "rank": 2})
        self.store.put(("docs",), "guide", {"text": "A guide to ramen shops", "rank": 3})
        found = self.store.search(("users",), query="what does the user like to eat", limit=1)
        self.assertEqual([i.key for i in found], ["food"])
        self.assertGreater(found[0].score, 0)
        self.assertEqual([i.key for i in self.store.search(ALICE, filter={"rank": {"$gt": 1}})], ["work"])
        self.assertEqual([i.key for i in self.store.search(ALICE, limit=1, offset=1)], ["work"])

    def test_filters_read_all_matches(self):
        shop = "The ramen shop at the corner of the market, which serves a spicy broth with noodles, egg and spring onions; it is shop number"
        for i in range(6):
            self.store.put(ALICE, f"shop {i}", {"text": f"{shop} {i}", "rank": i})
        keys = [i.key for i in self.store.search(ALICE, query="ramen shops", limit=6)]
        self.assertEqual(sorted(keys), [f"shop {i}" for i in range(6)])
        rank = int(keys[-1].removeprefix("shop "))
        found = self.store.search(ALICE, query="ramen shops", filter={"rank": rank})
        self.assertEqual([i.key for i in found], [keys[-1]])

    def test_records_of_concurrent_writes(self):
        def write_concurrently():
            for value in ("cat", "dog", "fish"):
                self.client.memories.create(f'"pet"\n{{"text": "Has a {value}"}}', bucket=bucket)

        self.store.put(ALICE, "home", {"text": "Lives in Lisbon"})
        bucket = self.client.buckets.list()[-1].id
        write_concurrently()
        self.store.delete(ALICE, "pet")
        self.assertIsNone(self.store.get(ALICE, "pet"))
        write_concurrently()
        self.assertEqual([i.key for i in self.store.search(ALICE)], ["home", "pet"])
        self.store.put(ALICE, "pet", {"text": "Has a dog"})
        self.assertEqual(self.store.get(ALICE, "pet").value, {"text": "Has a dog"})
        self.assertEqual(len(list(self.client.memories.list(bucket=bucket))), 2)

    def test_namespaces(self):
        for namespace in (("a", "b", "c"), ("a", "b", "d"), ("e", "c")):
            self.store.put(namespace, "k", {"text": "/".join(namespace)})
        self.assertEqual(self.store.list_namespaces(prefix=("a",), max_depth=2), [("a", "b")])
        self.assertEqual(self.store.list_namespaces(suffix=("c",)), [("a", "b", "c"), ("e", "c")])

    def test_asynchronous(self):
        async def scenario():
            await self.store.aput(ALICE, "city", {"text": "Lives in Lisbon"})
            return await self.store.asearch(ALICE, query="where does the user live")

        self.assertEqual([i.value["text"] for i in asyncio.run(scenario())], ["Lives in Lisbon"])

    def test_in_a_graph(self):
        def remember(state: dict, *, store: BaseStore) -> dict:
            store.put(ALICE, "fact", {"text": state["text"]})
            return {"text": store.get(ALICE, "fact").value["text"]}

        graph = StateGraph(dict)
        graph.add_node("remember", remember)
        graph.add_edge(START, "remember")
        result = graph.compile(store=self.store).invoke({"text": "Plays the cello"})
        self.assertEqual(result["text"], "Plays the cello")

    def test_the_other_kind_of_client(self):
        with self.assertRaisesRegex(MnemoError, "client must be Mnemo, not AsyncMnemo"):
            MnemoStore(AsyncMnemo("http://test", "mn_key"))


if __name__ == "__main__":
    unittest.main()
