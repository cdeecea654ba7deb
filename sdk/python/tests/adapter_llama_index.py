"""MnemoRetriever and MnemoMemoryBlock with llama-index-core and the server at MNEMO_URL."""

import unittest

from llama_index.core.llms import ChatMessage
from llama_index.core.memory import Memory

from mnemo import AsyncMnemo, Mnemo, MnemoError
from mnemo.integrations.llama_index import MnemoMemoryBlock, MnemoRetriever


class LlamaIndexTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.sync = self.enterContext(Mnemo())
        self.client = await self.enterAsyncContext(AsyncMnemo())

    async def test_retriever(self):
        memory = self.sync.memories.create("2026-04-01 The boiler was serviced by Mr Okafor.")
        chat = self.sync.chats.ingest([{"role": "user", "content": "The boiler makes a whistling noise."}], title="Boiler")
        for nodes in (
            MnemoRetriever(self.sync).retrieve("who serviced the boiler"),
            await MnemoRetriever(self.sync, self.client, limit=5).aretrieve("who serviced the boiler"),
        ):
            self.assertIn("Okafor", nodes[0].text)
            self.assertEqual(nodes[0].node_id, memory.memory_id)
            self.assertGreater(nodes[0].score, 0)
            self.assertIn(chat.conversation_id, [n.metadata.get("conversation_id") for n in nodes])
        self.sync.memories.delete(memory.memory_id)
        self.sync.chats.delete([chat.conversation_id])

    async def test_memory_block(self):
        block = MnemoMemoryBlock(self.client, limit=3)
        await block.aput([ChatMessage(role="user", content="I am allergic to peanuts"), ChatMessage(role="assistant", content="Noted.")])
        memory = Memory.from_defaults(session_id="s", token_limit=4000, memory_blocks=[block])
        await memory.aput(ChatMessage(role="user", content="which foods am I allergic to"))
        prompt = "\n".join(str(m.content) for m in await memory.aget())
        self.assertIn("allergic to peanuts", prompt)
        self.assertNotIn("Noted.", prompt)
        self.sync.memories.delete_many([m.id for m in self.sync.memories.list()])

    async def test_the_other_kind_of_client(self):
        with self.assertRaisesRegex(MnemoError, "client must be AsyncMnemo, not Mnemo"):
            MnemoMemoryBlock(Mnemo("http://test", "mn_key"))


if __name__ == "__main__":
    unittest.main()
