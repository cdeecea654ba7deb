# Generated from mnemo/_async/memories.py by hack/sdk/generate.py. DO NOT EDIT.
from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Dict, List

from .. import models
from .._call import Call, listed, path
from .._guard import guarded
from ..errors import MnemoError
from .transport import Transport

Filter = Dict[str, Any]


@guarded
class Memories:
    """Short texts about a user."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self,
        text: str,
        *,
        bucket: int | str | None = None,
        source: str | None = None,
        tags: Sequence[str] | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> models.CreatedMemory:
        """Stores a memory. Begin the text with the date, YYYY-MM-DD. bucket is the id of a bucket.

        Filters select memories by tags, agent_id, run_id and metadata, which has at most 4 KiB.
        """
        body = models.CreateMemoryRequest(
            text=text,
            bucket_id=_bucket(bucket),
            source=source,
            tags=None if tags is None else listed(tags),
            agent_id=agent_id,
            run_id=run_id,
            custom_metadata=None if metadata is None else {**metadata},
        )
        call = Call("POST", "/api/v2/memory", body=body, idempotency_key=idempotency_key)
        return self._transport.call(models.CreatedMemory, call)

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        bucket: int | str | None = None,
        min_score: float | None = None,
        as_of: str | None = None,
        filter: Filter | None = None,
    ) -> List[models.Memory]:
        """Returns the memories that match a question, best first.

        as_of is a time: later memories are ignored. filter is a condition such as {"tags": "travel"}.
        """
        base = {"query": query, "bucketId": bucket, "minScore": min_score, "asOf": as_of, "filter": _json(filter)}
        found: List[models.Memory] = []
        skip: int | None = 0
        while skip is not None:
            params = {**base, "count": limit - len(found), "skip": skip}
            page = self._transport.call(models.MemoryList, Call("GET", "/api/v2/memory", params))
            found.extend(page.memories)
            skip = page.next_skip if len(found) < limit else None
        return found

    def list(
        self,
        *,
        bucket: int | str | None = None,
        latest: bool = False,
        filter: Filter | None = None,
        page_size: int = 100,
    ) -> Iterator[models.Memory]:
        """Yields all memories, or those that match a filter, oldest first or latest first, and requests pages as needed."""
        base = {"bucketId": bucket, "latest": latest, "count": page_size, "filter": _json(filter)}
        skip: int | None = 0
        while skip is not None:
            params = {**base, "skip": skip}
            page = self._transport.call(models.MemoryList, Call("GET", "/api/v2/memory", params))
            for memory in page.memories:
                yield memory
            skip = page.next_skip

    def get(self, memory_id: str) -> models.FullMemory:
        """Returns a memory."""
        return self._transport.call(models.FullMemory, Call("GET", path("/api/memories/{}", memory_id)))

    def update(
        self,
        memory_id: str,
        *,
        text: str | None = None,
        bucket: int | str | None = None,
        bucket_name: str | None = None,
        tags: Sequence[str] | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> models.UpdatedMemory:
        """Changes the given fields of a memory, or moves it to a bucket by id or name. A changed text is a new version."""
        body = models.UpdateMemoryRequest(
            memory_id=memory_id,
            text=text,
            bucket_id=_bucket(bucket),
            bucket_name=bucket_name,
            tags=None if tags is None else listed(tags),
            agent_id=agent_id,
            run_id=run_id,
            custom_metadata=None if metadata is None else {**metadata},
        )
        return self._transport.call(models.UpdatedMemory, Call("POST", "/api/v2/memory/update", body=body))

    def move(
        self, memory_ids: Sequence[str], *, bucket: int | str | None = None, bucket_name: str | None = None
    ) -> models.UpdatedMemory:
        """Moves up to 100 memories to a bucket: all of them, or none if an id does not exist."""
        body = models.UpdateMemoryRequest(
            memory_ids=listed(memory_ids), bucket_id=_bucket(bucket), bucket_name=bucket_name
        )
        return self._transport.call(models.UpdatedMemory, Call("POST", "/api/v2/memory/update", body=body))

    def merge(self, memory_id: str, memory_ids: Sequence[str]) -> models.MergedMemories:
        """Merges up to 100 near-duplicates into a memory: all of them, or none if an id does not exist."""
        body = models.MergeMemoriesRequest(memory_ids=listed(memory_ids))
        call = Call("POST", path("/api/memories/{}/merge", memory_id), body=body)
        return self._transport.call(models.MergedMemories, call)

    def unmerge(self, memory_id: str, memory_ids: Sequence[str] | None = None) -> models.UnmergedMemories:
        """Restores memories that were merged into one, by default all of them."""
        body = models.UnmergeMemoriesRequest(memory_ids=None if memory_ids is None else listed(memory_ids))
        call = Call("POST", path("/api/memories/{}/unmerge", memory_id), body=body)
        return self._transport.call(models.UnmergedMemories, call)

    def delete(self, memory_id: str) -> None:
        """Deletes a memory with its versions, and the memories that were merged into it."""
        self._transport.send(Call("DELETE", path("/api/memories/{}", memory_id), gone={}))

    def delete_many(self, memory_ids: Sequence[str]) -> models.DeletedMemories:
        """Deletes up to 10,000 memories. Ids that do not exist are skipped."""
        body = models.DeleteMemoriesRequest(memory_ids=listed(memory_ids))
        return self._transport.call(models.DeletedMemories, Call("POST", "/api/memories/bulk-delete", body=body))

    def versions(self, memory_id: str, *, page_size: int = 100) -> Iterator[models.MemoryVersion]:
        """Yields the versions of a memory, newest first."""
        skip: int | None = 0
        while skip is not None:
            call = Call("GET", path("/api/memories/{}/versions", memory_id), {"count": page_size, "skip": skip})
            page = self._transport.call(models.MemoryVersions, call)
            for version in page.versions:
                yield version
            skip = page.next_skip


def _json(filter: Filter | None) -> str | None:
    return None if filter is None else json.dumps(filter)


def _bucket(bucket: int | str | None) -> int | None:
    try:
        return None if bucket is None else int(bucket)
    except ValueError:
        raise MnemoError(f"bucket must be the id of a bucket, not {bucket!r}") from None
