from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from typing import List, Literal

from .. import models
from .._call import Call, decode, listed, path
from .._conversation import Message, ingest_request
from .._guard import guarded
from ..errors import ImportFailedError, MnemoError, failure_of
from .transport import AsyncTransport

_CHATS = "/api/chat-history/chats"


@guarded
class AsyncChats:
    """Conversations."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def search(
        self,
        query: str,
        *,
        limit: int = 20,
        provider: str = "all",
        context_chunks: int | None = None,
        date_from: str | None = None,
        date_to: str | None = None,
        min_score: float | None = None,
        as_of: str | None = None,
        time_zone: str | None = None,
    ) -> List[models.SearchResult]:
        """Returns the messages that match a question, best first, with their surroundings."""
        body = models.SearchRequest(
            query=query,
            limit=limit,
            provider=provider,
            context_chunks=context_chunks,
            date_from=date_from,
            date_to=date_to,
            min_score=min_score,
            as_of=as_of,
            time_zone=time_zone,
        )
        found = await self._transport.call(models.SearchResults, Call("POST", "/api/chat-history/search", body=body))
        return found.results

    async def recall(
        self,
        query: str,
        *,
        max_tokens: int = 600,
        platform: str | None = None,
        include: Sequence[Literal["memories", "chats"]] | None = None,
        after: str | None = None,
        before: str | None = None,
        context: str | None = None,
        history: Sequence[Mapping[str, str]] = (),
        min_score: float | None = None,
        time_zone: str | None = None,
    ) -> models.Recollection:
        """Returns cited excerpts for a question, to be inserted into a prompt."""
        body = models.RecallRequest(
            query=query,
            max_tokens=max_tokens,
            platform=platform,
            include=None if include is None else [*include],
            after=after,
            before=before,
            conversation_context=context,
            conversation_history=[models.RecallTurn(**turn) for turn in history] or None,
            min_score=min_score,
            time_zone=time_zone,
        )
        return await self._transport.call(models.Recollection, Call("POST", "/api/chat-history/recall", body=body))

    async def ingest(
        self,
        messages: Iterable[Message],
        *,
        conversation_id: str | None = None,
        title: str | None = None,
        platform: str = "custom",
        created_at: datetime | None = None,
        idempotency_key: str | None = None,
    ) -> models.Ingested:
        """Stores a conversation. Messages are dicts with role and content, and optionally id and created_at.

        Sending a conversation_id again adds the messages whose ids are new and replaces the others.

        Raises ImportFailedError, and stores nothing, if the request has more than 100,000 tokens, or if the conversation
        would grow beyond 32 MiB or 100,000 messages.
        """
        body = ingest_request(messages, conversation_id, title, platform, created_at)
        call = Call("POST", "/api/chat-history/ingest/custom-online", body=body, idempotency_key=idempotency_key)
        response = await self._transport.send(call)
        ingested = decode(models.Ingested, response)
        if response.headers.get("X-Import-Status") == "failed":
            raise await self._failure(ingested.import_id)
        return ingested

    async def _failure(self, import_id: str) -> ImportFailedError:
        try:
            call = Call("GET", path("/api/chat-history/imports/{}", import_id))
            return failure_of(await self._transport.call(models.Import, call))
        except MnemoError as e:  # for example because the key may only write
            return ImportFailedError(f"import {import_id} failed; its reason could not be read: {e}")

    async def list(
        self,
        *,
        provider: str = "all",
        title: str | None = None,
        date_from: str | None = None,
        date_to: str | None = None,
        pinned_only: bool = False,
        import_id: str | None = None,
        status: Literal["active", "excluded", "blocked", "all"] = "active",
        page_size: int = 100,
    ) -> AsyncIterator[models.ConversationSummary]:
        """Yields conversations, and requests pages as needed."""
        params = {
            "provider": provider,
            "title": title,
            "dateFrom": date_from,
            "dateTo": date_to,
            "pinnedOnly": pinned_only,
            "importId": import_id,
            "status": status,
            "pageSize": page_size,
        }
        number, last = 1, 1
        while number <= last:
            page = await self._transport.call(models.ConversationPage, Call("GET", _CHATS, {**params, "page": number}))
            for item in page.items:
                yield item
            number, last = number + 1, page.total_pages

    async def get(self, conversation_id: str) -> models.Conversation:
        """Returns a conversation with its messages."""
        call = Call("GET", "/api/chat-history/conversation", {"conversationId": conversation_id})
        return await self._transport.call(models.Conversation, call)

    async def count(self) -> int:
        """Returns the number of active conversations."""
        call = Call("GET", "/api/chat-history/count")
        return (await self._transport.call(models.ConversationCount, call)).count

    async def update(
        self, conversation_ids: Sequence[str], *, excluded: bool | None = None, pinned: bool | None = None
    ) -> models.UpdatedConversations:
        """Excludes conversations from search, or pins them."""
        body = models.UpdateConversationsRequest(ids=listed(conversation_ids), excluded=excluded, pinned=pinned)
        return await self._transport.call(models.UpdatedConversations, Call("PATCH", _CHATS, body=body))

    async def delete(self, conversation_ids: Sequence[str]) -> models.DeletedConversations:
        """Deletes conversations with their messages. This cannot be undone."""
        body = models.DeleteConversationsRequest(ids=listed(conversation_ids))
        return await self._transport.call(models.DeletedConversations, Call("DELETE", _CHATS, body=body))
