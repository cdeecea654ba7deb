"""A retriever and a memory block for LlamaIndex."""

from __future__ import annotations

from datetime import date
from typing import Any, List, Optional

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.memory import BaseMemoryBlock
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from .. import AsyncMnemo, Mnemo, models
from ._client import require


class MnemoRetriever(BaseRetriever):
    """Finds memories and passages of conversations by meaning."""

    def __init__(self, client: Mnemo, async_client: AsyncMnemo | None = None, *, limit: int = 10) -> None:
        super().__init__()
        self._client = require(Mnemo, client)
        self._async_client = None if async_client is None else require(AsyncMnemo, async_client)
        self._limit = limit

    def _retrieve(self, query_bundle: QueryBundle) -> List[NodeWithScore]:
        return [_node(r) for r in self._client.search(query_bundle.query_str, limit=self._limit)]

    async def _aretrieve(self, query_bundle: QueryBundle) -> List[NodeWithScore]:
        if self._async_client is None:
            return self._retrieve(query_bundle)
        return [_node(r) for r in await self._async_client.search(query_bundle.query_str, limit=self._limit)]


class MnemoMemoryBlock(BaseMemoryBlock[str]):
    """Long-term memory: stores what users say and recalls what matches the last message."""

    name: str = "mnemo"
    limit: int = 5
    _client: AsyncMnemo = PrivateAttr()

    def __init__(self, client: AsyncMnemo, **fields: Any) -> None:
        super().__init__(**fields)
        self._client = require(AsyncMnemo, client)

    async def _aget(self, messages: Optional[List[ChatMessage]] = None, **block_kwargs: Any) -> str:
        asked = next((m.content for m in reversed(messages or []) if m.role == MessageRole.USER and m.content), None)
        if asked is None:
            return ""
        found = await self._client.memories.search(asked, limit=self.limit)
        return "\n".join(m.text for m in found)

    async def _aput(self, messages: List[ChatMessage]) -> None:
        for message in messages:
            if message.role == MessageRole.USER and message.content and message.content.strip():
                await self._client.memories.create(f"{date.today().isoformat()} {message.content}")


def _node(result: models.AnyResult) -> NodeWithScore:
    if result.memory is not None:
        memory = result.memory
        node = TextNode(id_=memory.id, text=memory.text, metadata={"created_at": memory.metadata.created_at.isoformat()})
    elif result.passage is not None:
        passage = result.passage
        node = TextNode(
            id_=f"{passage.conversation_id}/{passage.message_index}",
            text=passage.text,
            metadata={
                "conversation_id": passage.conversation_id,
                "title": passage.title,
                "sender": passage.sender,
                "created_at": passage.timestamp.isoformat(),
            },
        )
    else:
        raise ValueError(f"unknown kind of result: {result.type}")
    return NodeWithScore(node=node, score=result.score)
