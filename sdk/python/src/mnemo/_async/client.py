from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Dict, List, Literal

import httpx

from .. import models
from .._call import Call
from .._config import Config
from .._guard import guarded
from ..errors import MnemoError
from .account import AsyncAccount
from .buckets import AsyncBuckets
from .chats import AsyncChats
from .imports import AsyncImports
from .memories import AsyncMemories
from .transport import AsyncTransport


@guarded
class AsyncMnemo:
    """A client of a Mnemo server.

    url and api_key default to the environment variables MNEMO_URL and MNEMO_API_KEY. With the key of an application,
    user is the id of the user on whose behalf it acts.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        user: str | None = None,
        timeout: float = 60.0,
        max_retries: int = 4,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        if not isinstance(http_client, (httpx.AsyncClient, type(None))):
            raise MnemoError(f"http_client must be a httpx.AsyncClient, not {type(http_client).__name__}")
        config = Config.load(url, api_key, user, timeout, max_retries)
        self._owned = http_client is None
        self._use(AsyncTransport(config, http_client or httpx.AsyncClient()))

    def _use(self, transport: AsyncTransport) -> None:
        self._transport = transport
        self.memories = AsyncMemories(transport)
        self.buckets = AsyncBuckets(transport)
        self.chats = AsyncChats(transport)
        self.imports = AsyncImports(transport)
        self.account = AsyncAccount(transport)

    def for_user(self, user: str) -> AsyncMnemo:
        """Returns a client that acts for a user and shares the connections of this one."""
        client = AsyncMnemo.__new__(AsyncMnemo)
        client._owned = False
        client._use(AsyncTransport(replace(self._transport.config, user=user), self._transport.http))
        return client

    async def search(
        self,
        query: str,
        *,
        limit: int = 10,
        include: Sequence[Literal["memories", "chats"]] | None = None,
        context_chunks: int | None = None,
        min_score: float | None = None,
        as_of: str | None = None,
        time_zone: str | None = None,
        filter: Dict[str, Any] | None = None,
    ) -> List[models.AnyResult]:
        """Returns memories and passages of conversations in one list, best first. With a filter, only memories."""
        body = models.SearchAllRequest(
            query=query,
            limit=limit,
            include=None if include is None else [*include],
            context_chunks=context_chunks,
            min_score=min_score,
            as_of=as_of,
            time_zone=time_zone,
            filter=filter,
        )
        return (await self._transport.call(models.AllResults, Call("POST", "/api/search", body=body))).results

    async def close(self) -> None:
        """Closes the connections, unless they are shared."""
        if self._owned:
            await self._transport.http.aclose()

    async def __aenter__(self) -> AsyncMnemo:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
