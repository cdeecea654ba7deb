from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import List

import anyio
import httpx

from .. import models
from .._call import Call, connection_error, delay, path
from .._events import Event, EventReader
from .._guard import guarded
from .._upload import FileSource, Upload
from ..errors import failure_of
from .transport import AsyncTransport

#: Seconds without data after which a stream of events is broken: the server sends a heartbeat every 15 seconds.
_LONGEST_SILENCE = 45.0


@guarded
class AsyncImports:
    """Imports of chat exports."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(
        self,
        file: FileSource,
        *,
        platform: str | None = None,
        skip_invalid: bool = False,
        idempotency_key: str | None = None,
    ) -> models.StartedImport:
        """Uploads an export of an assistant or of Mnemo. The server continues with the import.

        With skip_invalid, an export of Mnemo is restored without its invalid lines, which a warning of the import names.
        """
        return await self._create([file], platform, skip_invalid, idempotency_key)

    async def create_many(
        self,
        files: Sequence[FileSource],
        *,
        platform: str | None = None,
        skip_invalid: bool = False,
        idempotency_key: str | None = None,
    ) -> List[models.StartedFile]:
        """Uploads up to 10 exports in one request, all or none. Each has an import of its own."""
        return (await self._create(files, platform, skip_invalid, idempotency_key)).imports

    async def _create(
        self, files: Sequence[FileSource], platform: str | None, skip_invalid: bool, idempotency_key: str | None
    ) -> models.StartedImport:
        form = {} if platform is None else {"platform": platform}
        if skip_invalid:
            form["skipInvalid"] = "true"
        uploads: List[Upload] = []
        try:
            uploads.extend(map(Upload, files))
            call = Call("POST", "/api/chat-history/import", uploads=uploads, form=form, idempotency_key=idempotency_key)
            return await self._transport.call(models.StartedImport, call)
        finally:
            for upload in uploads:
                upload.close()

    async def get(self, import_id: str) -> models.Import:
        """Returns the status of an import."""
        return await self._transport.call(models.Import, Call("GET", path("/api/chat-history/imports/{}", import_id)))

    async def list(self, *, page_size: int = 100) -> AsyncIterator[models.Import]:
        """Yields imports, newest first."""
        number, last = 1, 1
        while number <= last:
            call = Call("GET", "/api/chat-history/imports", {"page": number, "pageSize": page_size})
            page = await self._transport.call(models.ImportPage, call)
            for item in page.items:
                yield item
            number, last = number + 1, page.total_pages

    async def follow(self, import_id: str) -> AsyncGenerator[models.Import, None]:
        """Yields the status of an import now and after each change, until it failed or is done and indexed."""
        last_id, failures, settled = "", 0, False
        while not settled:
            call = Call("GET", path("/api/chat-history/imports/{}/events", import_id), idle=_LONGEST_SILENCE)
            if last_id:
                call.headers["Last-Event-ID"] = last_id
            response = await self._transport.stream(call)
            interruption: httpx.TransportError = httpx.RemoteProtocolError("the stream of events ended")
            try:
                settled = response.status_code == 204
                async for event in _events(response):
                    status = models.Import.model_validate_json(event.data)
                    last_id, failures, settled = event.id, 0, _settled(status)
                    yield status
            except httpx.TransportError as e:
                interruption = e
            finally:
                await response.aclose()
            if not settled:
                pause = delay(call, failures, self._transport.config.max_retries, None)
                if pause is None:
                    raise connection_error(self._transport.config.url, interruption) from interruption
                failures += 1
                await anyio.sleep(pause)

    async def wait(self, import_id: str, *, indexed: bool = False) -> models.Import:
        """Waits until an import is done: its conversations are found by keyword, or with indexed also by meaning.

        Raises ImportFailedError if the file cannot be imported.
        """
        status = await self.get(import_id)
        async with aclosing(self.follow(import_id)) as changes:
            async for status in changes:
                if status.status == "done" and not indexed:
                    break
        if status.status == "failed":
            raise failure_of(status)
        return status


async def _events(response: httpx.Response) -> AsyncIterator[Event]:
    reader = EventReader()
    async for line in response.aiter_lines():
        event = reader.add(line)
        if event is not None:
            yield event


def _settled(status: models.Import) -> bool:
    return status.status == "failed" or (status.status == "done" and status.indexed >= status.total)
