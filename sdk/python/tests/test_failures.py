"""Every failure is an error of this package: hostile answers and arguments at every method, without a server."""

import asyncio
import contextlib
import inspect
import io
import tempfile
import unittest
from datetime import datetime
from itertools import islice

import httpx

from mnemo import AsyncMnemo, Mnemo, MnemoError

#: Valid arguments of every method.
CALLS = {
    "search": (("question",), {}),
    "account.delete": ((), {"confirm": "delete everything"}),
    "account.export": ((io.BytesIO(),), {}),
    "buckets.create": (("name",), {}),
    "buckets.delete": ((1,), {}),
    "buckets.list": ((), {}),
    "buckets.update": ((1,), {}),
    "chats.count": ((), {}),
    "chats.delete": ((["c"],), {}),
    "chats.get": (("c",), {}),
    "chats.ingest": (([{"role": "user", "content": "text"}],), {}),
    "chats.list": ((), {}),
    "chats.recall": (("question",), {}),
    "chats.search": (("question",), {}),
    "chats.update": ((["c"],), {}),
    "imports.create": ((b"content",), {}),
    "imports.create_many": (([b"content"],), {}),
    "imports.follow": (("i",), {}),
    "imports.get": (("i",), {}),
    "imports.list": ((), {}),
    "imports.wait": (("i",), {}),
    "memories.create": (("text",), {}),
    "memories.delete": (("m",), {}),
    "memories.delete_many": ((["m"],), {}),
    "memories.get": (("m",), {}),
    "memories.list": ((), {}),
    "memories.merge": (("m", ["n"]), {}),
    "memories.move": ((["m"],), {"bucket": 1}),
    "memories.search": (("question",), {}),
    "memories.unmerge": (("m",), {}),
    "memories.update": (("m",), {}),
    "memories.versions": (("m",), {}),
}

BODIES = {
    "empty": b"",
    "truncated": b'{"memories": [{"id": "m',
    "null": b"null",
    "number": b"1",
    "string": b'"text"',
    "list": b"[[], 1, null]",
    "object": b"{}",
    "nested": b"[" * 10_000,
    "nested objects": b'{"a":' * 10_000,
    "not UTF-8": b'{"error": "\xff"}',
    "lone surrogate": b'{"error": "\\ud800", "memoryId": "\\ud800"}',
    "long number": b'{"totalPages": ' + b"9" * 10_000 + b', "count": ' + b"9" * 10_000 + b"}",
    "wrong types": b'{"memories": 1, "results": "x", "items": {}, "totalPages": [], "versions": null, "count": "many",'
    b' "error": {"a": [1]}, "code": ["b"], "rejectedIds": 5, "importId": 7, "imports": [3], "content": {}}',
    "event": b"id: 1\ndata: {\n\n",
    "event of wrong types": b'id: 1\ndata: {"status": 1}\n\n',
    "event of nested lists": b"data: " + b"[" * 10_000 + b"\n\n",
}

HEADERS = {
    "none": {},
    "not gzip": {"Content-Encoding": "gzip"},
    "not deflate": {"Content-Encoding": "deflate"},
    "unknown encoding": {"Content-Encoding": "x", "Content-Type": "text/html; charset=unknown"},
    "negative pause": {"Retry-After": "-1"},
    "no number": {"Retry-After": "nan"},
    "infinite pause": {"Retry-After": "-inf"},
    "address": {"Location": "http://[", "X-Import-Status": "failed", "X-Request-Id": "\u00e9"},
}

STATUSES = (200, 204, 302, 400, 403, 404, 500, 503)


async def _coroutine():
    return []


class _Hostile:
    """Has no value."""

    def __repr__(self):
        raise RuntimeError("repr")


VALUES = {
    "object": object,
    "no representation": _Hostile,
    "coroutine": _coroutine,
    "lone surrogate": lambda: "\ud800",
    "line break": lambda: "a\nb",
    "number": lambda: 7,
    "long number": lambda: 10**5000,
    "not a number": lambda: float("nan"),
    "bytes": lambda: b"\xff",
    "list of objects": lambda: [object()],
    "list of None": lambda: [None],
    "list of numbers": lambda: [1],
    "object as value": lambda: {"a": object()},
    "number as key": lambda: {1: float("inf")},
    "nested": lambda: _nested(5_000),
    "set": lambda: {"a", "b"},
    "time without zone": lambda: datetime(2026, 1, 1),
}


def _nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return {"a": value}


def _answer(status, headers, body):
    return httpx.MockTransport(lambda _: httpx.Response(status, headers=headers, stream=_Stream(body)))


class _Stream(httpx.SyncByteStream, httpx.AsyncByteStream):
    def __init__(self, body):
        self._body = body

    def __iter__(self):
        yield self._body

    async def __aiter__(self):
        yield self._body


def _methods(client):
    """Returns the public methods of a client, by name."""
    found = {"search": client.search}
    for resource in ("account", "buckets", "chats", "imports", "memories"):
        for name, method in inspect.getmembers(getattr(client, resource), inspect.ismethod):
            if not name.startswith("_"):
                found[f"{resource}.{name}"] = method
    return found


class FailuresTest(unittest.TestCase):
    def setUp(self):
        self.enterContext(contextlib.chdir(self.enterContext(tempfile.TemporaryDirectory())))  # account.export writes files
        self.runner = self.enterContext(asyncio.Runner())
        self.leaks = []

    def clients(self, answer):
        options = {"url": "http://test", "api_key": "mn_key", "max_retries": 0}
        yield Mnemo(**options, http_client=httpx.Client(transport=answer))
        yield AsyncMnemo(**options, http_client=httpx.AsyncClient(transport=answer))

    def call(self, case, method, *args, **kwargs):
        """Calls a method, which may succeed or raise an error of this package."""
        try:
            result = method(*args, **kwargs)
            if inspect.isgenerator(result):
                list(islice(result, 3))
            if inspect.iscoroutine(result) or inspect.isasyncgen(result):
                self.runner.run(_finish(result))
        except MnemoError as e:
            if not str(e).strip():
                self.leaks.append(f"{case}: no message")
        except OSError:
            pass  # of a file of the caller
        except Exception as e:
            self.leaks.append(f"{case}: {type(e).__name__}")

    def test_all_methods_are_tested(self):
        for client in self.clients(None):
            self.assertEqual(sorted(_methods(client)), sorted(CALLS))

    def test_hostile_answers(self):
        answers = [(status, "none", body) for status in (200, 403, 503) for body in BODIES]
        answers += [(status, headers, "object") for status in STATUSES for headers in HEADERS]
        for status, headers, body in answers:
            for client in self.clients(_answer(status, HEADERS[headers], BODIES[body])):
                for name, method in _methods(client).items():
                    args, kwargs = CALLS[name]
                    self.call(f"{type(client).__name__}.{name}, {status} {headers} {body}", method, *args, **kwargs)
        self.assertEqual(self.leaks, [])

    def test_hostile_arguments(self):
        for client in self.clients(_answer(200, {}, b"{}")):
            for name, method in _methods(client).items():
                args, kwargs = CALLS[name]
                for position, parameter in enumerate(inspect.signature(method).parameters):
                    for value, make in VALUES.items():
                        given, named = list(args), {**kwargs, parameter: make()}
                        if position < len(args):
                            given[position] = named.pop(parameter)
                        self.call(f"{type(client).__name__}.{name}({parameter}={value})", method, *given, **named)
        self.assertEqual(self.leaks, [])

    def test_messages_name_the_argument(self):
        client, _ = self.clients(_answer(200, {}, b"{}"))
        for expected, call in {
            "create: text: Input should be a valid string": lambda: client.memories.create(7),
            "bucket must be the id of a bucket, not 'work'": lambda: client.memories.create("text", bucket="work"),
            "'role' is missing": lambda: client.chats.ingest([{"content": "text"}]),
            "messages is a coroutine: use the result of await": lambda: client.chats.ingest(_coroutine()),
            "asynchronous iterator": lambda: client.chats.ingest(_generator()),
            "unexpected response to http://test/api/v2/memory: done: Field required": lambda: client.memories.create("text"),
            "http_client must be a httpx.Client": lambda: Mnemo("http://test", "mn_key", http_client=httpx.AsyncClient()),
            "http_client must be a httpx.AsyncClient": lambda: AsyncMnemo("http://test", "mn_key", http_client=httpx.Client()),
        }.items():
            with self.subTest(expected), self.assertRaisesRegex(MnemoError, expected):
                call()


async def _generator():
    yield {"role": "user", "content": "text"}


async def _finish(result):
    if inspect.iscoroutine(result):
        return await result
    seen = 0
    async for _ in result:
        seen += 1
        if seen == 3:
            return None


if __name__ == "__main__":
    unittest.main()
