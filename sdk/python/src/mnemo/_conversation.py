"""Conversations as they are sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, Union
from uuid import uuid4

from . import models

Message = Union[models.IngestMessage, Mapping[str, Any]]


def ingest_request(
    messages: Iterable[Message],
    conversation_id: str | None,
    title: str | None,
    platform: str,
    created_at: datetime | None,
) -> models.IngestRequest:
    """Returns the request that stores a conversation. Messages without an id are numbered, and those without a time
    follow one another by a millisecond."""
    start = created_at or datetime.now(timezone.utc)
    complete = [_message(m, i, start + timedelta(milliseconds=i)) for i, m in enumerate(messages)]
    conversation = models.IngestConversation(
        id=conversation_id or str(uuid4()),
        title=title or (complete[0].content[:80] if complete else ""),
        created_at=start,
        messages=complete,
    )
    return models.IngestRequest(conversation=conversation, platform=platform)


def _message(message: Message, index: int, default_time: datetime) -> models.IngestMessage:
    if isinstance(message, models.IngestMessage):
        return message
    return models.IngestMessage(
        id=str(message.get("id") or index),
        role=message["role"],
        content=message["content"],
        created_at=message.get("created_at") or default_time,
    )
