"""The kind of client that an adapter has."""

from __future__ import annotations

from typing import TypeVar

from .. import AsyncMnemo, Mnemo, MnemoError

C = TypeVar("C", Mnemo, AsyncMnemo)


def require(kind: type[C], client: C) -> C:
    """Returns the client of an adapter, whose calls would not work with one of the other kind."""
    if not isinstance(client, kind):
        raise MnemoError(f"client must be {kind.__name__}, not {type(client).__name__}")
    return client
