"""Texts with a key, one memory each, in a bucket."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from .. import ConflictError, Mnemo, NotFoundError, models
from ._client import require


@dataclass(frozen=True)
class Record:
    """A memory whose first line is its key."""

    memory_id: str
    key: str
    content: str
    created_at: datetime
    score: float | None


def _record(memory: models.Memory) -> Record:
    key, _, content = memory.text.partition("\n")
    return Record(memory.id, key, content, memory.metadata.created_at, memory.score)


class Records:
    """The records of a bucket, which is created when the first one is stored.

    Concurrent writes of a new key create several records with this key. The oldest one counts.
    """

    def __init__(self, client: Mnemo, bucket: str) -> None:
        self._client = require(Mnemo, client)
        self._name = bucket

    def _bucket(self) -> str | None:
        return next((b.id for b in self._client.buckets.list() if b.name == self._name), None)

    def _ensure_bucket(self) -> str:
        found = self._bucket()
        if found is not None:
            return found
        try:
            return self._client.buckets.create(self._name).id
        except ConflictError:
            found = self._bucket()
            if found is None:
                raise
            return found

    def _stored(self) -> Iterator[Record]:
        """Yields all records, oldest first."""
        bucket = self._bucket()
        if bucket is not None:
            for memory in self._client.memories.list(bucket=bucket):
                yield _record(memory)

    def _delete(self, records: Iterable[Record]) -> None:
        for record in records:
            with suppress(NotFoundError):  # deleted concurrently
                self._client.memories.delete(record.memory_id)

    def all(self) -> Iterator[Record]:
        """Yields the record of each key, oldest first."""
        keys: set[str] = set()
        for record in self._stored():
            if record.key not in keys:
                keys.add(record.key)
                yield record

    def search(self, query: str, limit: int) -> list[Record]:
        """Returns the records that match a question, best first."""
        bucket = self._bucket()
        if bucket is None:
            return []
        return [_record(m) for m in self._client.memories.search(query, bucket=bucket, limit=limit)]

    def find(self, key: str) -> Record | None:
        """Returns the record with a key. It reads the records of the bucket up to that one."""
        return next((r for r in self.all() if r.key == key), None)

    def put(self, key: str, content: str) -> None:
        """Creates or replaces a record."""
        text, bucket = f"{key}\n{content}", self._ensure_bucket()
        found = [r for r in self._stored() if r.key == key]
        if not found:
            self._client.memories.create(text, bucket=bucket)
        elif found[0].content != content:
            self._client.memories.update(found[0].memory_id, text=text)
        self._delete(found[1:])

    def delete(self, *keys: str) -> None:
        """Deletes the records with the keys, if they exist, newest first: until a key is deleted, its value stays the same."""
        self._delete(reversed([r for r in self._stored() if r.key in keys]))
