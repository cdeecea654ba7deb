import assert from "node:assert/strict";
import { createServer } from "node:http";
import test from "node:test";

import * as mnemo from "mnemo-client";

import { scenarios } from "./scenarios.js";

for (const [title, run] of Object.entries(scenarios)) {
  test(title, () => run({ client: new mnemo.Mnemo(), name: "esm", ...mnemo }));
}

/**
 * Starts a server that answers each request with the next step: [status, headers, body], "close", "hang", or a function that
 * writes the response.
 */
async function serve(t, ...steps) {
  const requests = [];
  const server = createServer((request, response) => {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      requests.push({ headers: request.headers, body: Buffer.concat(chunks).toString(), query: new URL(request.url, "http://host").searchParams });
      const step = steps.shift();
      if (step === "hang") return;
      if (step === "close") return request.socket.destroy();
      if (typeof step === "function") return step(response);
      response.writeHead(step[0], step[1]).end(step[2]);
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => (server.closeAllConnections(), server.close()));
  const client = (options) => new mnemo.Mnemo({ url: `127.0.0.1:${server.address().port}`, apiKey: "mn_key", ...options });
  return { requests, client };
}

const created = '{"done":"ok","memoryId":"m1"}';
const soon = { "Retry-After": "0" };

test("all attempts have one idempotency key", async (t) => {
  const { requests, client } = await serve(t, "close", [503, soon, "{}"], [429, soon, "{}"], [200, {}, created], [200, {}, created]);
  assert.equal((await client().memories.create("text")).memoryId, "m1");
  await client().memories.create("text");
  const keys = requests.map((r) => r.headers["idempotency-key"]);
  assert.equal(new Set(keys.slice(0, 4)).size, 1);
  assert.notEqual(keys[4], keys[0]);
});

test("an ingest fails even if its reason cannot be read", async (t) => {
  const forbidden = [403, {}, '{"error":"the token lacks the scope read","code":"forbidden"}'];
  const { requests, client } = await serve(t, [200, { "X-Import-Status": "failed" }, '{"importId":"i1"}'], forbidden, [200, {}, '{"importId":"i2"}']);
  const messages = [{ role: "user", content: "text" }];
  const failed = await client().chats.ingest(messages).catch((e) => e);
  assert.ok(failed instanceof mnemo.ImportFailedError);
  assert.match(failed.message, /import i1 failed; .*lacks the scope read/);
  assert.equal((await client().chats.ingest(messages)).importId, "i2");
  assert.equal(requests.length, 3);
});

test("an upload is sent again", async (t) => {
  const { requests, client } = await serve(t, [503, soon, ""], [202, {}, '{"importId":"i1"}']);
  assert.equal((await client().imports.create(new Blob(["exported"]))).importId, "i1");
  assert.ok(requests.every((r) => r.body.includes("exported")));
});

test("Retry-After is honoured", async (t) => {
  const { client } = await serve(t, [429, { "Retry-After": "1" }, "{}"], [200, {}, created]);
  const start = performance.now();
  await client().memories.create("text");
  assert.ok(performance.now() - start >= 990);
});

test("retries end", async (t) => {
  const body = '{"error":"request rate limit exceeded","code":"rate_limited"}';
  const limited = [429, { ...soon, "X-Request-Id": "r1" }, body];
  const { requests, client } = await serve(t, limited, limited, limited);
  const expected = { name: "RateLimitError", code: "rate_limited", requestId: "r1", retryAfter: 0, status: 429 };
  await assert.rejects(client({ maxRetries: 2 }).memories.create("text"), expected);
  assert.equal(requests.length, 3);
});

test("a long Retry-After and errors of input are not retried", async (t) => {
  const { requests, client } = await serve(t, [429, { "Retry-After": "3600" }, "{}"], [403, {}, '{"code":"quota_exceeded"}']);
  await assert.rejects(client().memories.create("text"), mnemo.RateLimitError);
  await assert.rejects(client().memories.create("text"), mnemo.QuotaExceededError);
  assert.equal(requests.length, 2);
});

const late = { name: "APITimeoutError", message: /^http:\/\/127\.0\.0\.1:\d+ did not respond/ };

test("timeout", async (t) => {
  const { client } = await serve(t, "hang");
  await assert.rejects(client({ timeout: 200, maxRetries: 0 }).buckets.list(), late);
  const slow = (_, { signal }) =>
    new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
      setTimeout(() => resolve(new Response("[]")), 100);
    });
  await client({ timeout: Infinity, maxRetries: 0, fetch: slow }).buckets.list();
});

test("an upload lasts longer than the timeout", async (t) => {
  const { client } = await serve(t, (response) => setTimeout(() => response.writeHead(202).end('{"importId":"i1"}'), 500), "hang");
  const patient = client({ timeout: 200, maxRetries: 0 });
  assert.equal((await patient.imports.create(new Blob(["x".repeat(64 << 10)]))).importId, "i1");
  await assert.rejects(patient.imports.create(new Blob(["small"])), late);
});

test("a response that stalls ends with the timeout", { timeout: 10_000 }, async (t) => {
  const stall = (status) => (response) => response.writeHead(status).write("[");
  const { client } = await serve(t, stall(200), stall(200), stall(404));
  const { buckets, account, memories } = client({ timeout: 200, maxRetries: 0 });
  await assert.rejects(buckets.list(), late);
  const reader = (await account.export()).getReader();
  await reader.read();
  await assert.rejects(reader.read(), late);
  await assert.rejects(memories.get("m1"), { name: "NotFoundError", code: "" });
});

test("a response lasts longer than the timeout while it arrives", async (t) => {
  const { client } = await serve(t, async (response) => {
    for (const part of ["[", " ", " ", " ", " ", "]"]) {
      response.write(part);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    response.end();
  });
  assert.deepEqual(await client({ timeout: 300, maxRetries: 0 }).buckets.list(), []);
});

test("a silent stream of events is opened again", { timeout: 10_000 }, async (t) => {
  const event = (id, status) => `id: ${id}\ndata: {"status":"${status}","total":1,"indexed":1}\n\n`;
  const { client, requests } = await serve(t, (response) => response.writeHead(200).write(event(7, "running")), [200, {}, event(8, "done")]);
  const changes = client({ timeout: 1_000 }).imports.follow("i1");
  assert.equal((await changes.next()).value.status, "running");
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const next = changes.next();
  const advance = (milliseconds) => (t.mock.timers.tick(milliseconds), new Promise((resolve) => setImmediate(resolve)));
  await advance(0); // begins to read
  await advance(44_000); // heartbeats arrive every 15 s
  await advance(500);
  assert.equal(requests.length, 1);
  await advance(500);
  await advance(500); // before the next attempt
  t.mock.timers.reset();
  assert.equal((await next).value.status, "done");
  assert.equal(requests[1].headers["last-event-id"], "7");
});

test("the default title consists of whole characters", async (t) => {
  const ingested = '{"conversationId":"c1"}';
  const { client, requests } = await serve(t, [200, {}, ingested], [200, {}, ingested]);
  await client().chats.ingest([{ role: "user", content: "x".repeat(79) + "😀 and more" }]);
  await client().chats.ingest([{ role: "user", content: "😀\n" + "😀".repeat(100) }]);
  const titles = requests.map((r) => JSON.parse(r.body).conversation.title);
  assert.deepEqual(titles, ["x".repeat(79) + "😀", "😀\n" + "😀".repeat(78)]);
});

test("a search reads pages up to its limit", async (t) => {
  const page = (id, nextSkip) => [200, {}, JSON.stringify({ memories: [{ id }], buckets: [], nextSkip })];
  const { client, requests } = await serve(t, page("m1", 1), page("m2", 2), page("m3"), page("m4"));
  const ids = async (limit) => (await client().memories.search("cat", { limit })).map((m) => m.id);
  assert.deepEqual(await ids(2), ["m1", "m2"]);
  assert.deepEqual(requests.map((r) => [r.query.get("count"), r.query.get("skip")]), [["2", "0"], ["1", "1"]]);
  assert.deepEqual(await ids(5), ["m3"]);
});

const gone = [404, {}, '{"error":"memory not found","code":"not_found"}'];

test("a deletion that was executed without a response succeeds", async (t) => {
  const { client } = await serve(t, "close", gone, [504, soon, ""], gone, "close", gone);
  await client().memories.delete("m1");
  await client().memories.delete("m1");
  assert.deepEqual(await client().buckets.delete(12), { message: "Bucket deleted", movedCount: 0 });
});

test("other deletions of what does not exist fail", async (t) => {
  const { client } = await serve(t, gone, [429, soon, "{}"], gone, "close", [404, {}, "<html>"], "close", gone);
  for (const remove of [() => client().memories.delete("m1"), () => client().memories.delete("m1"), () => client().buckets.delete(12)]) {
    await assert.rejects(remove(), { name: "NotFoundError" });
  }
  await assert.rejects(client().memories.get("m1"), { name: "NotFoundError" });
});

test("connection errors name the address", async () => {
  const client = new mnemo.Mnemo({ url: "http://127.0.0.1:1", apiKey: "mn_key", maxRetries: 0 });
  await assert.rejects(client.buckets.list(), { name: "APIConnectionError", message: /^connection to http:\/\/127\.0\.0\.1:1 failed/ });
});

test("settings", async (t) => {
  const { requests, client } = await serve(t, [200, {}, "[]"]);
  await client({ apiKey: " mn_key\n" }).buckets.list();
  assert.equal(requests[0].headers.authorization, "Bearer mn_key");
  for (const apiKey of ["Bearer mn_key", "mn_key\nmn_other", "mn_…"]) {
    assert.throws(() => client({ apiKey }), (e) => /must be a token/.test(e.message) && !e.message.includes(apiKey));
  }
  assert.throws(() => client({ apiKey: " " }), /apiKey is required/);
});

test("headers", async (t) => {
  const { requests, client } = await serve(t, [200, {}, "[]"], [200, {}, "[]"]);
  const alice = client({ user: "alice" });
  await alice.buckets.list();
  await alice.forUser("bob").buckets.list();
  assert.deepEqual(requests.map((r) => r.headers["x-mnemo-user"]), ["alice", "bob"]);
  assert.equal(requests[0].headers.authorization, "Bearer mn_key");
});

test("names of users are UTF-8", async (t) => {
  const { requests, client } = await serve(t, [200, {}, "[]"]);
  await client({ user: "Zoë 日本" }).buckets.list();
  assert.equal(Buffer.from(requests[0].headers["x-mnemo-user"], "latin1").toString(), "Zoë 日本");
});

test("a response of a proxy", async (t) => {
  const { client } = await serve(t, [404, {}, "<html>"]);
  await assert.rejects(client().memories.get("m1"), { name: "NotFoundError", code: "" });
});
