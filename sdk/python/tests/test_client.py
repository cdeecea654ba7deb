"""The synchronous client against the server at MNEMO_URL."""

import io
import json
import pathlib
import tempfile
import unittest
import zipfile
from datetime import datetime, timezone

import mnemo
from mnemo import Mnemo

EXPORT = json.dumps(
    [
        {
            "uuid": "sdk-claude-1",
            "name": "Night train",
            "created_at": "2025-05-09T14:30:00Z",
            "updated_at": "2025-05-09T14:31:00Z",
            "chat_messages": [
                {"uuid": "a", "sender": "human", "text": "Which seat on the night train to Vienna?", "created_at": "2025-05-09T14:30:00Z"},
                {"uuid": "b", "sender": "assistant", "text": "A window seat.", "created_at": "2025-05-09T14:30:05Z"},
            ],
        }
    ]
).encode()


class ClientTest(unittest.TestCase):
    def setUp(self):
        self.client = self.enterContext(Mnemo())

    def test_memories(self):
        created = self.client.memories.create("2026-05-03 I adopted a grey cat called Miso.")
        again = self.client.memories.create("2026-05-03 I adopted a grey cat called Miso.")
        self.assertEqual(again.memory_id, created.memory_id)
        self.assertTrue(again.is_duplicate)
        found = self.client.memories.search("what pet do I have", limit=3)
        self.assertEqual(found[0].id, created.memory_id)
        self.assertGreater(found[0].score, 0)
        self.assertEqual(self.client.memories.search("what pet do I have", as_of="2020-01-01"), [])
        updated = self.client.memories.update(created.memory_id, text="2026-05-03 I adopted a black cat called Miso.")
        self.assertEqual(updated.version, 2)
        versions = list(self.client.memories.versions(created.memory_id, page_size=1))
        self.assertEqual([v.version for v in versions], [2, 1])
        self.assertEqual(self.client.memories.get(created.memory_id).version, 2)
        self.client.memories.delete(created.memory_id)
        with self.assertRaises(mnemo.NotFoundError):
            self.client.memories.get(created.memory_id)

    def test_search_beyond_the_token_limit_of_a_page(self):
        text = "The harbour master of Husum recorded another ship that arrived with the evening tide and left before noon; it was ship number"
        ids = [self.client.memories.create(f"2026-01-01 {text} {i}").memory_id for i in range(8)]
        found = self.client.memories.search("ships in the harbour of Husum", limit=8, min_score=0)
        self.assertEqual(len(found), 8)
        self.assertEqual(len({m.id for m in found}), 8)
        self.assertEqual(self.client.memories.delete_many(ids).deleted_count, 8)

    def test_merges(self):
        old = self.client.memories.create("2026-05-04 My cat Miso likes tuna").memory_id
        new = self.client.memories.create("2026-05-04 My cat Miso likes tuna best").memory_id
        merged = self.client.memories.merge(new, [old])
        self.assertEqual((merged.merged_count, merged.memory_ids), (1, [old]))
        kept = self.client.memories.get(new)
        self.assertEqual((kept.merged_count, [m.memory_id for m in kept.merged]), (1, [old]))
        self.assertEqual(self.client.memories.get(old).merged_into, new)
        self.assertNotIn(old, [m.id for m in self.client.memories.list()])
        self.assertEqual(self.client.memories.unmerge(new, [old]).restored_count, 1)
        self.assertEqual(self.client.memories.unmerge(new).memory_ids, [])
        self.assertEqual(self.client.memories.delete_many([old, new]).deleted_count, 2)

    def test_filters(self):
        paris = self.client.memories.create(
            "2026-06-01 Booked a hotel in Paris", tags=["travel"], agent_id="planner", run_id="r1", metadata={"year": 2026}
        )
        other = self.client.memories.create("2026-06-02 Booked a hotel for the cat", metadata={"year": 2020})
        wanted = {"tags": "travel", "metadata.year": {"gte": 2024}}
        self.assertEqual([m.id for m in self.client.memories.search("hotel", filter=wanted)], [paris.memory_id])
        self.assertEqual([m.id for m in self.client.memories.list(filter={"agentId": "planner"})], [paris.memory_id])
        found = self.client.search("hotel", filter=wanted)
        self.assertEqual([r.memory.id for r in found], [paris.memory_id])
        self.assertEqual(found[0].memory.custom_metadata, {"year": 2026})
        self.client.memories.update(paris.memory_id, tags=["work"], metadata={"year": 2021})
        self.assertEqual(self.client.memories.search("hotel", filter=wanted), [])
        self.assertEqual(self.client.memories.get(paris.memory_id).tags, ["work"])
        self.client.memories.delete_many([paris.memory_id, other.memory_id])

    def test_pages_and_buckets(self):
        bucket = self.client.buckets.create("Pages", description="numbered")
        ids = [self.client.memories.create(f"2026-01-0{i} Fact number {i}", bucket=bucket.id).memory_id for i in range(1, 6)]
        listed = [m.id for m in self.client.memories.list(bucket=bucket.id, page_size=2)]
        self.assertEqual(listed, ids)
        latest = [m.id for m in self.client.memories.list(bucket=bucket.id, page_size=2, latest=True)]
        self.assertEqual(latest, ids[::-1])
        self.client.buckets.update(bucket.id, name="Numbered pages")
        self.assertEqual(self.client.memories.move(ids[:2], bucket_name="General").moved_count, 2)
        counts = {b.name: b.memory_count for b in self.client.buckets.list()}
        self.assertEqual(counts["Numbered pages"], 3)
        self.assertEqual(self.client.buckets.delete(bucket.id).moved_count, 3)
        self.assertEqual(self.client.memories.delete_many(ids).deleted_count, 5)

    def test_chats(self):
        stored = self.client.chats.ingest(
            [
                {"role": "user", "content": "Where should we go in May?"},
                {"role": "assistant", "content": "Lisbon is warm and not yet crowded in May."},
            ],
            title="Trip to Portugal",
        )
        conversation = self.client.chats.get(stored.conversation_id)
        self.assertEqual([m.sender for m in conversation.messages], ["human", "assistant"])
        found = self.client.chats.search("which city is warm in spring", limit=5)
        self.assertEqual(found[0].conversation_id, stored.conversation_id)
        recalled = self.client.chats.recall("where should we travel in May", max_tokens=200)
        self.assertIn("Lisbon", recalled.content)
        self.assertEqual(recalled.sources[0].conversation_id, stored.conversation_id)
        self.assertIn("chat", {r.type for r in self.client.search("which city is warm in May")})
        self.assertEqual(self.client.chats.update([stored.conversation_id], pinned=True).count, 1)
        pinned = [c.id for c in self.client.chats.list(pinned_only=True, page_size=1)]
        self.assertEqual(pinned, [stored.conversation_id])
        before = self.client.chats.count()
        self.assertEqual(self.client.chats.delete([stored.conversation_id]).deleted, [stored.conversation_id])
        self.assertEqual(self.client.chats.count(), before - 1)

    def test_ingest_of_a_conversation_that_is_too_long(self):
        messages = [{"role": "user", "content": "word " * 100_001}]
        same = {"conversation_id": "too-long", "idempotency_key": "sdk-python-too-long", "created_at": datetime.now(timezone.utc)}
        for _ in range(2):
            with self.assertRaises(mnemo.ImportFailedError) as raised:
                self.client.chats.ingest(messages, **same)
            self.assertIn("more than 100000 tokens", str(raised.exception))
        self.assertEqual([c for c in self.client.chats.list(status="all") if c.title.startswith("word word")], [])

    def test_import_progress_and_export(self):
        started = self.client.imports.create(io.BytesIO(EXPORT), platform="claude")
        states = list(self.client.imports.follow(started.import_id))
        self.assertEqual((states[-1].status, states[-1].imported, states[-1].indexed), ("done", 1, 1))
        self.assertEqual(self.client.imports.wait(started.import_id, indexed=True).imported, 1)
        self.assertIn(started.import_id, [i.import_id for i in self.client.imports.list()])
        with tempfile.TemporaryDirectory() as directory:
            target = pathlib.Path(directory, "export.zip")
            self.client.account.export(target)
            self.assertIn("Night train", "".join(text(target)))
            source = pathlib.Path(directory, "conversations.json")
            source.write_bytes(EXPORT)
            first, second = self.client.imports.create_many([source, io.BytesIO(b"not an export")], platform="claude")
        self.assertEqual(first.file, "conversations.json")
        self.assertEqual(self.client.imports.wait(first.import_id).unchanged, 1)
        with self.assertRaises(mnemo.ImportFailedError):
            self.client.imports.wait(second.import_id)
        self.client.chats.delete([c.id for c in self.client.chats.list(import_id=started.import_id)])

    def test_failed_import(self):
        with self.assertRaises((mnemo.ImportFailedError, mnemo.BadRequestError)):
            self.client.imports.wait(self.client.imports.create(b"not an export").import_id)

    def test_errors(self):
        with self.assertRaises(mnemo.BadRequestError) as raised:
            self.client.memories.create("")
        self.assertEqual((raised.exception.status, raised.exception.code), (400, "invalid"))
        self.assertTrue(raised.exception.request_id)
        self.assertIn(raised.exception.request_id, str(raised.exception))
        with self.assertRaises(mnemo.NotFoundError) as raised:
            self.client.memories.move(["unknown"], bucket_name="General")
        self.assertEqual(raised.exception.rejected_ids, ["unknown"])
        with Mnemo(api_key="mn_wrong") as stranger, self.assertRaises(mnemo.AuthenticationError):
            stranger.buckets.list()

    def test_idempotency_key(self):
        first = self.client.memories.create("2026-02-02 Same key", idempotency_key="sdk-python-1")
        self.assertEqual(self.client.memories.create("2026-02-02 Same key", idempotency_key="sdk-python-1"), first)
        with self.assertRaises(mnemo.ConflictError) as raised:
            self.client.memories.create("2026-02-02 Other text", idempotency_key="sdk-python-1")
        self.assertEqual(raised.exception.code, "idempotency_key_reused")
        self.client.memories.delete(first.memory_id)


def text(path):
    with zipfile.ZipFile(path) as archive:
        return [archive.read(name).decode() for name in archive.namelist()]


if __name__ == "__main__":
    unittest.main()
