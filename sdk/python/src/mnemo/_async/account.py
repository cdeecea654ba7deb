from __future__ import annotations

import os
from typing import BinaryIO

import httpx

from .. import models
from .._call import Call, connection_error
from .._guard import guarded
from .transport import AsyncTransport


@guarded
class AsyncAccount:
    """All data of the user."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def export(self, target: str | os.PathLike[str] | BinaryIO) -> None:
        """Writes a zip file with all data to a path or file."""
        if isinstance(target, (str, os.PathLike)):
            with open(target, "wb") as file:
                await self._export(file)
        else:
            await self._export(target)

    async def _export(self, file: BinaryIO) -> None:
        response = await self._transport.stream(Call("GET", "/api/export"))
        try:
            async for chunk in response.aiter_bytes():
                file.write(chunk)
        except httpx.RequestError as e:
            raise connection_error(self._transport.config.url, e) from e
        finally:
            await response.aclose()

    async def delete(self, *, confirm: str) -> models.DeletedAccount:
        """Deletes all data of the user. confirm must be "delete everything"."""
        body = models.DeleteAccountRequest(confirm=confirm)
        return await self._transport.call(models.DeletedAccount, Call("DELETE", "/api/account", body=body))
