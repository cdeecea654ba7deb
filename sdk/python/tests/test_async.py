"""The asynchronous client against the server at MNEMO_URL."""

import asyncio
import unittest

import mnemo
from mnemo import AsyncMnemo
from test_client import EXPORT


class AsyncClientTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.client = await self.enterAsyncContext(AsyncMnemo())

    async def test_memories(self):
        bucket = await self.client.buckets.create("Asynchronous")
        created = await asyncio.gather(
            *(self.client.memories.create(f"2026-03-0{i} Planted tulip number {i}", bucket=bucket.id) for i in range(1, 4))
        )
        listed = [m.id async for m in self.client.memories.list(bucket=bucket.id, page_size=2)]
        self.assertEqual(sorted(listed), sorted(c.memory_id for c in created))
        found = await self.client.memories.search("which flowers did I plant", bucket=bucket.id)
        self.assertEqual(len(found), 3)
        self.assertEqual((await self.client.memories.delete_many(listed)).deleted_count, 3)
        await self.client.buckets.delete(bucket.id)

    async def test_import_progress(self):
        started = await self.client.imports.create(EXPORT.replace(b"sdk-claude-1", b"sdk-claude-2"))
        done = await self.client.imports.wait(started.import_id)
        self.assertEqual((done.status, done.total), ("done", 1))
        ids = [c.id async for c in self.client.chats.list(import_id=started.import_id)]
        self.assertEqual((await self.client.chats.delete(ids)).count, len(ids))

    async def test_errors(self):
        with self.assertRaises(mnemo.NotFoundError):
            await self.client.chats.get("unknown")


if __name__ == "__main__":
    unittest.main()
