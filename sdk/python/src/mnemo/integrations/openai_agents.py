"""Conversation history for the OpenAI Agents SDK."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any, cast

from agents import TResponseInputItem
from agents.memory import SessionABC, SessionSettings

from .. import AsyncMnemo, models

_ROLES = ("user", "assistant", "system")


class MnemoSession(SessionABC):
    """A session that is a conversation: later conversations recall it.

    session_id is the id of the conversation on the platform. One process at a time changes a session.
    """

    def __init__(
        self,
        session_id: str,
        client: AsyncMnemo,
        *,
        platform: str = "openai-agents",
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings
        self._client = client
        self._platform = platform

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        messages = await self._messages()
        if limit is not None:
            messages = messages[max(0, len(messages) - limit) :]
        return [_item(m) for m in messages]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        if items:
            stored = await self._messages()
            await self._store(items, len(stored), stored[-1].timestamp if stored else None)

    async def pop_item(self) -> TResponseInputItem | None:
        messages = await self._messages()
        if not messages:
            return None
        items = [_item(m) for m in messages]
        await self.clear_session()
        if items[:-1]:
            await self._store(items[:-1], 0, None, messages[0].timestamp)
        return items[-1]

    async def clear_session(self) -> None:
        conversation = await self._conversation()
        if conversation is not None:
            await self._client.chats.delete([conversation.id])

    async def _conversation(self) -> models.Conversation | None:
        async for summary in self._client.chats.list(provider=self._platform, title=self.session_id, status="all"):
            if summary.title == self.session_id:
                conversation = await self._client.chats.get(summary.id)
                if conversation.platform_conversation_id == self.session_id:
                    return conversation
        return None

    async def _messages(self) -> list[models.ChatMessage]:
        conversation = await self._conversation()
        return [] if conversation is None else conversation.messages

    async def _store(
        self, items: list[TResponseInputItem], first: int, last: datetime | None, start: datetime | None = None
    ) -> None:
        """Stores items as messages with ascending ids and times."""
        start = start or datetime.now(timezone.utc)
        if last is not None:
            start = max(start, last + timedelta(milliseconds=1))
        messages = [
            {"id": str(first + i), "created_at": start + timedelta(milliseconds=i), **_message(item)}
            for i, item in enumerate(items)
        ]
        await self._client.chats.ingest(
            messages, conversation_id=self.session_id, title=self.session_id, platform=self._platform, created_at=start
        )


def _message(item: TResponseInputItem) -> dict[str, str]:
    """Returns a message. Plain text stays readable; everything else is JSON, which begins with a brace."""
    fields = cast("dict[str, Any]", item)
    content, role = fields.get("content"), fields.get("role")
    if fields.keys() == {"role", "content"} and role in _ROLES and isinstance(content, str) and content.strip():
        if not content.startswith("{"):
            return {"role": role, "content": content}
    kind = role if role in _ROLES else "tool"
    return {"role": kind, "content": json.dumps(fields, ensure_ascii=False)}


def _item(message: models.ChatMessage) -> TResponseInputItem:
    if message.text.startswith("{"):
        return cast(TResponseInputItem, json.loads(message.text))
    role = "user" if message.sender == "human" else message.sender
    return cast(TResponseInputItem, {"role": role, "content": message.text})
