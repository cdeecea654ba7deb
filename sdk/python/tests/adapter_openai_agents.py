"""MnemoSession with openai-agents and the server at MNEMO_URL."""

import unittest

from agents.memory import Session

from mnemo import AsyncMnemo
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

    async def test_sessions_are_separate(self):
        other = MnemoSession("session-10", self.client)
        await other.add_items(ITEMS[:1])
        self.assertEqual(await self.session.get_items(), [])
        await other.clear_session()

    async def test_later_conversations_recall_it(self):
        await self.session.add_items([{"role": "user", "content": "My sister Ana studies violin in Porto."}])
        recalled = await self.client.chats.recall("where does my sister study")
        self.assertIn("Porto", recalled.content)


if __name__ == "__main__":
    unittest.main()
