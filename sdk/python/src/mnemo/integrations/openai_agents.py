"""Conversation history for the OpenAI Agents SDK."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any, cast

from agents import TResponseInputItem
from agents.memory import SessionABC, SessionSettings

from .. import AsyncMnemo, models
from ._client import require

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
        self._client = require(AsyncMnemo, client)
        self._platform = platform

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        messages = _kept(await self._conversation())
        if limit is not None:
            messages = messages[max(0, len(messages) - limit) :]
        return [_item(m) for m in messages]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        if not items:
            return
        conversation = await self._conversation()
        kept, start = _kept(conversation), _now()
        if kept:
            start = max(start, kept[-1].timestamp + timedelta(milliseconds=1))
        messages = [
            {"id": str(len(kept) + i), "created_at": start + timedelta(milliseconds=i), **_message(item)}
            for i, item in enumerate(items)
        ]
        await self._store(messages, start if conversation is None else conversation.created_at)

    async def pop_item(self) -> TResponseInputItem | None:
        conversation = await self._conversation()
        kept = _kept(conversation)
        if conversation is None or not kept:
            return None
        last = kept[-1]
        emptied = {"id": str(last.message_index), "role": last.sender, "content": "", "created_at": last.timestamp}
        await self._store([emptied], conversation.created_at)
        return _item(last)

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

    async def _store(self, messages: list[dict[str, Any]], created_at: datetime) -> None:
        """Adds messages, or replaces those whose ids are known. Their ids are their positions."""
        await self._client.chats.ingest(
            messages,
            conversation_id=self.session_id,
            title=self.session_id,
            platform=self._platform,
            created_at=created_at,
        )


def _kept(conversation: models.Conversation | None) -> list[models.ChatMessage]:
    """Returns the messages of items. A popped item leaves an empty message at the end, which the next one replaces."""
    messages = [] if conversation is None else [*conversation.messages]
    while messages and not messages[-1].text:
        messages.pop()
    return messages


def _now() -> datetime:
    """Returns the time with the precision of responses, so that a time is the same when it is sent again."""
    now = datetime.now(timezone.utc)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)


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
