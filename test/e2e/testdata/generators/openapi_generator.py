import os

from openapi_client import ApiClient, ChatHistoryApi, Configuration, CreateMemoryRequest, MemoriesApi, RecallRequest

text = os.environ["MNEMO_TEXT"]
configuration = Configuration(host=os.environ["MNEMO_URL"], access_token=os.environ["MNEMO_TOKEN"])
with ApiClient(configuration) as client:
    memories, history = MemoriesApi(client), ChatHistoryApi(client)
    memories.create_memory(CreateMemoryRequest(text=text))
    found = memories.list_memories_v2(query=text, count=1, all=False)
    chats = history.list_conversations(page=1, pinned_only=False)
    recalled = history.recall(RecallRequest(query=text, max_tokens=100))
    print(found.memories[0].text, chats.total, recalled.model)
