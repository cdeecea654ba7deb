"""MnemoSession with openai-agents and the server at MNEMO_URL."""

import unittest
from unittest import mock

from agents.memory import Session

from mnemo import APIConnectionError, AsyncMnemo, Mnemo, MnemoError
from mnemo.integrations.openai_agents import MnemoSession

ITEMS = [
    {"role": "user", "content": "What is the capital of Portugal?"},
    {"type": "function_call", "call_id": "c1", "name": "lookup", "arguments": '{"country":"Portugal"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "Lisbon"},
    {"role": "assistant", "content": [{"type": "output_text", "text": "Lisbon.", "annotations": []}]},
    {"role": "user", "content": '{"not": "an item"}'},
    {"role": "developer", "content": "Be brief."},
]


class SessionTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.client = await self.enterAsyncContext(AsyncMnemo())
        self.session = MnemoSession("session-1", self.client)
        self.addAsyncCleanup(self.session.clear_session)

    async def test_items_are_kept_in_order(self):
        self.assertIsInstance(self.session, Session)
        self.assertEqual(await self.session.get_items(), [])
        await self.session.add_items(ITEMS[:2])
        await self.session.add_items(ITEMS[2:])
        self.assertEqual(await self.session.get_items(), ITEMS)
        self.assertEqual(await self.session.get_items(limit=2), ITEMS[-2:])

    async def test_pop(self):
        await self.session.add_items(ITEMS)
        self.assertEqual(await self.session.pop_item(), ITEMS[-1])
        self.assertEqual(await self.session.get_items(), ITEMS[:-1])
        await self.session.add_items(ITEMS[-1:])
        self.assertEqual(await self.session.get_items(), ITEMS)
        await self.session.clear_session()
        self.assertIsNone(await self.session.pop_item())

    async def test_pop_until_empty(self):
        await self.session.add_items(ITEMS[:3])
        self.assertEqual([await self.session.pop_item() for _ in range(4)], [ITEMS[2], ITEMS[1], ITEMS[0], None])
        self.assertEqual(await self.session.get_items(), [])
        await self.session.add_items(ITEMS[:2])
        self.assertEqual(await self.session.get_items(), ITEMS[:2])
        self.assertEqual(await self.session.pop_item(), ITEMS[1])

    async def test_later_items_keep_the_creation_time(self):
        await self.session.add_items(ITEMS[:1])
        created = (await self.stored()).created_at
        await self.session.add_items(ITEMS[1:2])
        self.assertEqual((await self.stored()).created_at, created)

    async def test_pop_keeps_times_and_state(self):
        for item in ITEMS[:3]:
            await self.session.add_items([item])
        before = await self.stored()
        await self.client.chats.update([before.id], excluded=True, pinned=True)
        await self.session.pop_item()
        after = await self.stored()
        self.assertEqual((after.id, after.status), (before.id, "excluded"))
        self.assertEqual([m.timestamp for m in after.messages], [m.timestamp for m in before.messages])
        self.assertEqual((after.created_at, after.updated_at), (before.created_at, before.updated_at))
        pinned = [c.id async for c in self.client.chats.list(pinned_only=True, status="all")]
        self.assertEqual(pinned, [before.id])

    async def test_a_failed_pop_loses_nothing(self):
        await self.session.add_items(ITEMS)
        failure = mock.patch.object(self.client.chats, "ingest", side_effect=APIConnectionError("the connection broke"))
        with failure, self.assertRaises(APIConnectionError):
            await self.session.pop_item()
        self.assertEqual(await self.session.get_items(), ITEMS)

    async def test_a_popped_item_is_not_found(self):
        await self.session.add_items([ITEMS[0], {"role": "user", "content": "The garden gate opens with the code 4711."}])
        self.assertIn("4711", await self.everything_about("what is the code of the garden gate"))
        await self.session.pop_item()
        self.assertNotIn("4711", await self.everything_about("what is the code of the garden gate"))

    async def stored(self):
        [summary] = [c async for c in self.client.chats.list(provider="openai-agents", status="all")]
        return await self.client.chats.get(summary.id)

    async def everything_about(self, question):
        found = await self.client.chats.search(question, min_score=0)
        return str(found) + str(await self.client.chats.recall(question))

    async def test_sessions_are_separate(self):
        other = MnemoSession("session-10", self.client)
        await other.add_items(ITEMS[:1])
        self.assertEqual(await self.session.get_items(), [])
        await other.clear_session()

    async def test_later_conversations_recall_it(self):
        await self.session.add_items([{"role": "user", "content": "My sister Ana studies violin in Porto."}])
        recalled = await self.client.chats.recall("where does my sister study")
        self.assertIn("Porto", recalled.content)

    async def test_the_other_kind_of_client(self):
        with self.assertRaisesRegex(MnemoError, "client must be AsyncMnemo, not Mnemo"):
            MnemoSession("s", Mnemo("http://test", "mn_key"))


if __name__ == "__main__":
    unittest.main()
