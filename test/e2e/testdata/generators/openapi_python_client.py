import os

from mnemo_client import AuthenticatedClient
from mnemo_client.api.chat_history import list_conversations, recall
from mnemo_client.api.memories import create_memory, list_memories_v2
from mnemo_client.models import CreateMemoryRequest, RecallRequest

text = os.environ["MNEMO_TEXT"]
client = AuthenticatedClient(os.environ["MNEMO_URL"], os.environ["MNEMO_TOKEN"], raise_on_unexpected_status=True)
create_memory.sync(client=client, body=CreateMemoryRequest(text=text))
found = list_memories_v2.sync(client=client, query=text, count=1, all_=False)
chats = list_conversations.sync(client=client, page=1, pinned_only=False)
recalled = recall.sync(client=client, body=RecallRequest(query=text, max_tokens=100))
print(found.memories[0].text, chats.total, recalled.model)
