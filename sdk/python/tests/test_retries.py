"""Retries, timeouts and headers, against a scripted server."""

import http.server
import json
import threading
import time
import unittest
from unittest import mock
from urllib.parse import parse_qsl, urlsplit

import mnemo
from mnemo import Mnemo

CREATED = '{"done": "ok", "memoryId": "m1"}'
GONE = (404, {}, '{"error": "memory not found", "code": "not_found"}')


class Scripted(http.server.ThreadingHTTPServer):
    """Answers each request with the next step: (status, headers, body), "close", "hang", or a function of the handler."""

    def __init__(self, *steps):
        super().__init__(("127.0.0.1", 0), Handler)
        self.steps, self.requests, self.queries = list(steps), [], []
        self.released = threading.Event()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.requests.append((self.headers, body))
        self.server.queries.append(dict(parse_qsl(urlsplit(self.path).query)))
        step = self.server.steps.pop(0)
        if step == "hang":
            self.server.released.wait(10)
        if isinstance(step, str) or callable(step):
            self.close_connection = True
            return step(self) if callable(step) else None
        status, headers, text = step
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(text))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())

    do_GET = do_DELETE = do_POST

    def log_message(self, *_):
        pass


class RetryTest(unittest.TestCase):
    def serve(self, *steps, **options):
        server = Scripted(*steps)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.addCleanup(server.released.set)
        client = self.enterContext(Mnemo(f"127.0.0.1:{server.server_port}", "mn_key", **options))
        return server, client

    def test_failed_ingest(self):
        ingested = (
            '{"queued": true, "importId": "i1", "conversationId": "c1", "platform": "custom", "conversation": {"id": "c1", '
            '"platformConversationId": "x", "title": "t", "updatedAt": "2025-05-09T14:30:00Z", "messageCount": 1, "status": "queued"}}'
        )
        forbidden = (403, {}, '{"error": "the token lacks the scope read", "code": "forbidden"}')
        server, client = self.serve((200, {"X-Import-Status": "failed"}, ingested), forbidden, (200, {}, ingested))
        messages = [{"role": "user", "content": "text"}]
        with self.assertRaisesRegex(mnemo.ImportFailedError, "import i1 failed; .*lacks the scope read"):
            client.chats.ingest(messages)
        self.assertEqual(client.chats.ingest(messages).import_id, "i1")
        self.assertEqual(len(server.requests), 3)

    def test_skip_invalid_of_an_import(self):
        server, client = self.serve(*[(503, {}, "{}")] * 2, max_retries=0)
        for skip_invalid in (False, True):
            with self.assertRaises(mnemo.UnavailableError):
                client.imports.create(b"{}", skip_invalid=skip_invalid)
        self.assertEqual([b'name="skipInvalid"' in body for _, body in server.requests], [False, True])

    def test_follow_does_not_repeat_forever_without_events(self):
        _, client = self.serve((200, {}, "{}"), (200, {}, ": heartbeat"), max_retries=1)
        with self.assertRaisesRegex(mnemo.APIConnectionError, "the stream of events ended"):
            list(client.imports.follow("i1"))

    def test_one_idempotency_key_for_all_attempts(self):
        server, client = self.serve("close", (503, {"Retry-After": "0"}, "{}"), (429, {"Retry-After": "0"}, "{}"), (200, {}, CREATED))
        self.assertEqual(client.memories.create("text").memory_id, "m1")
        keys = {headers["Idempotency-Key"] for headers, _ in server.requests}
        self.assertEqual((len(server.requests), len(keys)), (4, 1))
        server.steps.append((200, {}, CREATED))
        client.memories.create("text")
        self.assertNotIn(server.requests[-1][0]["Idempotency-Key"], keys)

    def test_upload_is_sent_again_from_its_start(self):
        server, client = self.serve((503, {"Retry-After": "0"}, ""), (202, {}, '{"importId": "i1", "imports": []}'))
        self.assertEqual(client.imports.create(b"exported").import_id, "i1")
        self.assertTrue(all(b"exported" in body for _, body in server.requests))

    def test_waits_for_retry_after(self):
        _, client = self.serve((429, {"Retry-After": "1"}, "{}"), (200, {}, CREATED))
        start = time.monotonic()
        client.memories.create("text")
        self.assertGreaterEqual(time.monotonic() - start, 1)

    def test_gives_up(self):
        body = '{"error": "request rate limit exceeded", "code": "rate_limited"}'
        server, client = self.serve(*[(429, {"Retry-After": "0", "X-Request-Id": "r1"}, body)] * 3, max_retries=2)
        with self.assertRaises(mnemo.RateLimitError) as raised:
            client.memories.create("text")
        e = raised.exception
        self.assertEqual((e.code, e.request_id, e.retry_after, len(server.requests)), ("rate_limited", "r1", 0, 3))

    def test_long_retry_after_is_left_to_the_caller(self):
        server, client = self.serve((429, {"Retry-After": "3600"}, "{}"))
        with self.assertRaises(mnemo.RateLimitError):
            client.memories.create("text")
        self.assertEqual(len(server.requests), 1)

    def test_errors_of_input_are_not_retried(self):
        server, client = self.serve((403, {}, '{"error": "memory quota exceeded", "code": "quota_exceeded"}'))
        with self.assertRaises(mnemo.QuotaExceededError):
            client.memories.create("text")
        self.assertEqual(len(server.requests), 1)

    def test_timeout(self):
        _, client = self.serve("hang", timeout=0.2, max_retries=0)
        with self.assertRaises(mnemo.APITimeoutError):
            client.memories.create("text")

    def test_a_stream_of_events_is_silent_between_heartbeats(self):
        def events(handler):
            handler.send_response(200)
            handler.end_headers()
            for status in ("running", "done"):
                handler.wfile.write(b"id: 7\ndata: " + import_status(status).encode() + b"\n\n")
                handler.server.released.wait(0.5)

        _, client = self.serve(events, timeout=0.2, max_retries=0)
        self.assertEqual([i.status for i in client.imports.follow("i1")], ["running", "done"])

    def test_a_search_reads_pages_up_to_its_limit(self):
        server, client = self.serve(page("m1", 1), page("m2", 2), page("m3", None))
        self.assertEqual([m.id for m in client.memories.search("cat", limit=2)], ["m1", "m2"])
        self.assertEqual([(q["count"], q["skip"]) for q in server.queries], [("2", "0"), ("1", "1")])
        self.assertEqual([m.id for m in client.memories.search("cat", limit=5)], ["m3"])

    def test_a_deletion_that_was_executed_without_a_response_succeeds(self):
        server, client = self.serve("close", GONE, (504, {"Retry-After": "0"}, ""), GONE, "close", GONE)
        client.memories.delete("m1")
        client.memories.delete("m1")
        self.assertEqual(client.buckets.delete(12).moved_count, 0)
        self.assertEqual(len(server.requests), 6)

    def test_other_deletions_of_what_does_not_exist_fail(self):
        _, client = self.serve(GONE, (429, {"Retry-After": "0"}, "{}"), GONE, "close", (404, {}, "<html>"), "close", GONE)
        for remove in (client.memories.delete, client.memories.delete, client.buckets.delete, client.memories.get):
            with self.assertRaises(mnemo.NotFoundError):
                remove("m1")

    def test_headers(self):
        server, client = self.serve((200, {}, "[]"), (200, {}, "[]"), user="alice")
        client.buckets.list()
        client.for_user("bob").buckets.list()
        (first, _), (second, _) = server.requests
        self.assertEqual((first["X-Mnemo-User"], second["X-Mnemo-User"]), ("alice", "bob"))
        self.assertEqual(first["Authorization"], "Bearer mn_key")
        self.assertRegex(first["User-Agent"], r"^mnemo-python/\d")

    def test_response_of_a_proxy(self):
        _, client = self.serve((404, {}, "<html>"))
        with self.assertRaises(mnemo.NotFoundError) as raised:
            client.memories.get("m1")
        self.assertEqual(raised.exception.code, "")

    def test_settings(self):
        with mock.patch.dict("os.environ", {"MNEMO_URL": "", "MNEMO_API_KEY": "", "MNEMO_TOKEN": ""}):
            with self.assertRaisesRegex(mnemo.MnemoError, "MNEMO_URL"):
                Mnemo()
            with self.assertRaisesRegex(mnemo.MnemoError, "MNEMO_API_KEY"):
                Mnemo("https://mnemo.example.com")
            for key in ("Bearer mn_key", "mn_key\nmn_other", "mn_…"):
                with self.assertRaisesRegex(mnemo.MnemoError, "must be a token") as raised:
                    Mnemo("https://mnemo.example.com", key)
                self.assertNotIn(key, str(raised.exception))

    def test_settings_are_trimmed(self):
        server, client = self.serve((200, {}, "[]"))
        with Mnemo(f" {client._transport.config.url}\n", "mn_key\n") as other:
            other.buckets.list()
        self.assertEqual(server.requests[0][0]["Authorization"], "Bearer mn_key")

    def test_connection_errors_name_the_address(self):
        server, client = self.serve("hang", timeout=0.2, max_retries=0)
        address = client._transport.config.url
        with self.assertRaisesRegex(mnemo.APITimeoutError, address):
            client.buckets.list()
        with Mnemo("http://127.0.0.1:9", "mn_key", max_retries=0) as other:
            with self.assertRaisesRegex(mnemo.APIConnectionError, "http://127.0.0.1:9 failed"):
                other.buckets.list()

    def test_a_string_is_one_value(self):
        server, client = self.serve((200, {}, CREATED), (200, {}, '{"message": "", "deletedCount": 1, "errors": []}'))
        client.memories.create("text", tags="travel")
        client.memories.delete_many("m1")
        self.assertEqual(json.loads(server.requests[0][1])["tags"], ["travel"])
        self.assertEqual(json.loads(server.requests[1][1])["memoryIds"], ["m1"])


def page(memory_id, next_skip):
    metadata = {"text": "", "createdAt": "2026-01-01T00:00:00Z", "bucketId": 1, "bucketName": "General"}
    body = {"memories": [{"id": memory_id, "text": "", "metadata": metadata}], "buckets": []}
    return 200, {}, json.dumps(body if next_skip is None else {**body, "nextSkip": next_skip})


def import_status(status):
    counts = dict.fromkeys(("total", "imported", "updated", "unchanged", "skipped", "blocked", "failed", "indexed"), 0)
    texts = {"importId": "i1", "platform": "claude", "status": status, "file": "", "startedAt": "2026-01-01T00:00:00Z", "finishedAt": None}
    return json.dumps({**counts, **texts, "errors": [], "warnings": []})


if __name__ == "__main__":
    unittest.main()
