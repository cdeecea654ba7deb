"""Long-term memory for LangGraph."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import anyio.to_thread
from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from .. import Mnemo
from ._client import require
from ._records import Record, Records

_LONGEST_SEARCH = 1000
Namespace = tuple[str, ...]


class MnemoStore(BaseStore):
    """A store whose items are memories: a namespace is a bucket, and search is by meaning.

    An item is at most 32 KiB of JSON. get and put read the items of their namespace, so keep namespaces small. The
    index argument of put has no effect, because all items are indexed.
    """

    def __init__(self, client: Mnemo, *, prefix: str = "langgraph") -> None:
        self._client = require(Mnemo, client)
        self._prefix = prefix + "/"

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return [self._run(op) for op in ops]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await anyio.to_thread.run_sync(self.batch, list(ops))

    def _run(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            found = self._records(op.namespace).find(_line(op.key))
            return None if found is None else Item(**self._fields(op.namespace, found, exact=True))
        if isinstance(op, PutOp):
            self._put(op)
            return None
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            return self._list_namespaces(op)
        raise ValueError(f"unknown operation {type(op).__name__}")

    def _records(self, namespace: Namespace) -> Records:
        return Records(self._client, self._prefix + _bucket_name(namespace))

    def _fields(self, namespace: Namespace, record: Record, *, exact: bool = False) -> dict[str, Any]:
        updated = self._client.memories.get(record.memory_id).updated_at if exact else record.created_at
        return {
            "namespace": namespace,
            "key": json.loads(record.key),
            "value": json.loads(record.content),
            "created_at": record.created_at,
            "updated_at": updated,
        }

    def _put(self, op: PutOp) -> None:
        if op.value is None:
            self._records(op.namespace).delete(_line(op.key))
        else:
            self._records(op.namespace).put(_line(op.key), json.dumps(op.value, ensure_ascii=False))

    def _search(self, op: SearchOp) -> list[SearchItem]:
        limit = _LONGEST_SEARCH if op.filter else min(op.offset + op.limit, _LONGEST_SEARCH)
        found: list[SearchItem] = []
        for namespace in self._namespaces():
            if namespace[: len(op.namespace_prefix)] != op.namespace_prefix:
                continue
            records = self._records(namespace)
            for record in records.search(op.query, limit) if op.query else records.all():
                item = SearchItem(**self._fields(namespace, record), score=record.score)
                if all(_matches(item.value.get(name), wanted) for name, wanted in (op.filter or {}).items()):
                    found.append(item)
        if op.query:
            found.sort(key=lambda item: -(item.score or 0))
        return found[op.offset : op.offset + op.limit]

    def _namespaces(self) -> Iterator[Namespace]:
        for bucket in self._client.buckets.list():
            if bucket.name.startswith(self._prefix) and bucket.memory_count > 0:
                yield _namespace(bucket.name.removeprefix(self._prefix))

    def _list_namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        matching = (n for n in self._namespaces() if all(_fits(n, c) for c in op.match_conditions or ()))
        distinct = sorted({n[: op.max_depth] for n in matching})
        return distinct[op.offset : op.offset + op.limit]


def _line(key: str) -> str:
    """Returns a key as one line."""
    return json.dumps(key, ensure_ascii=False)


def _bucket_name(namespace: Namespace) -> str:
    """Joins the labels, which contain no dot. Names of buckets ignore case, so upper case is escaped."""
    return ".".join(
        "".join(c if c == c.casefold() and c not in "%;" else f"%{ord(c):x};" for c in label) for label in namespace
    )


def _namespace(name: str) -> Namespace:
    return tuple(re.sub("%([0-9a-f]+);", lambda m: chr(int(m[1], 16)), label) for label in name.split("."))


def _fits(namespace: Namespace, condition: MatchCondition) -> bool:
    path, size = condition.path, len(condition.path)
    part = namespace[:size] if condition.match_type == "prefix" else namespace[len(namespace) - size :]
    return len(namespace) >= size and all(wanted in ("*", label) for label, wanted in zip(part, path))


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda value, wanted: bool(value == wanted),
    "$ne": lambda value, wanted: bool(value != wanted),
    "$gt": lambda value, wanted: value is not None and bool(value > wanted),
    "$gte": lambda value, wanted: value is not None and bool(value >= wanted),
    "$lt": lambda value, wanted: value is not None and bool(value < wanted),
    "$lte": lambda value, wanted: value is not None and bool(value <= wanted),
}


def _matches(value: Any, wanted: Any) -> bool:
    if not isinstance(wanted, dict):
        return bool(value == wanted)
    if any(name.startswith("$") for name in wanted):
        return all(_OPERATORS[name](value, operand) for name, operand in wanted.items())
    return isinstance(value, dict) and all(_matches(value.get(name), inner) for name, inner in wanted.items())
