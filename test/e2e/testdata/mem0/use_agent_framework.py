# agent-framework-mem0: an agent whose chat client answers without a model.
import asyncio
import os

from agent_framework import Agent, BaseChatClient, ChatResponse, Message
from agent_framework_mem0 import Mem0ContextProvider
from mem0 import AsyncMemoryClient


class Parrot(BaseChatClient):
    seen = ""

    async def _inner_get_response(self, *, messages, stream, options, **kwargs):
        self.seen = str(options) + "\n".join(m.text for m in messages)
        return ChatResponse(messages=[Message("assistant", ["Certainly."])])


async def main():
    client = AsyncMemoryClient(api_key=os.environ["MNEMO_API_KEY"], host=os.environ["MNEMO_URL"] + "/mem0")
    provider = Mem0ContextProvider(mem0_client=client, user_id="framework", application_id="office", search_user_id="framework", search_application_id="office")
    chat = Parrot()
    await Agent(chat, context_providers=[provider]).run("My desk is on the third floor.")
    assert "Memories" not in chat.seen, chat.seen
    await Agent(chat, context_providers=[provider]).run("On which floor is my desk?")
    assert "Memories" in chat.seen and "third floor" in chat.seen, chat.seen
    page = await client.get_all(filters={"user_id": "framework", "app_id": "office"})
    assert {"My desk is on the third floor.", "Certainly."} <= {m["memory"] for m in page["results"]}, page
    await client.delete_all(user_id="framework")


asyncio.run(main())
