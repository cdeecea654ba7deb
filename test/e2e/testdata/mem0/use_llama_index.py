# llama-index-memory-mem0. from_client passes options that mem0ai 2 does not have, so the
# client is passed to the constructor.
import os

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import Memory
from llama_index.memory.mem0 import Mem0Memory
from mem0 import MemoryClient

client = MemoryClient(api_key=os.environ["MNEMO_API_KEY"], host=os.environ["MNEMO_URL"] + "/mem0")
memory = Mem0Memory(client=client, primary_memory=Memory.from_defaults(), context={"user_id": "llama"})
memory.put(ChatMessage(role="user", content="I am allergic to peanuts."))
memory.set(memory.get_all() + [ChatMessage(role="assistant", content="I will remember the peanuts.")])
shown = memory.get("What am I allergic to?")
assert shown[0].role == "system" and "allergic to peanuts" in shown[0].content, shown
assert client.get_all(filters={"user_id": "llama"})["count"] == 2
client.delete_all(user_id="llama")
