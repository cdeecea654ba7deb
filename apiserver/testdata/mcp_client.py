"""Drives a running server with Python's official MCP client.

usage: mcp_client.py URL TOKEN CONVERSATION MODE tools|cancel

MODE is legacy (the initialize handshake) or auto (the newest protocol). Ends
with 0 when everything was as it should be.
"""

import asyncio
import sys

import anyio
import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

URL, TOKEN, CONVERSATION, MODE, WHAT = sys.argv[1:]

NAMES = {
    "store_memory", "search_memories", "get_memories_and_buckets", "list_buckets", "create_bucket",
    "update_or_move_memories", "recall_chat_history", "search_chat_history", "get_full_conversation",
}


def check(good, what):
    if not good:
        raise SystemExit(f"mcp_client.py: {what}")


async def call(client, name, /, **arguments):
    """Calls a tool; the client holds what it answers to the tool's schema."""
    result = await client.call_tool(name, arguments)
    check(not result.is_error, f"{name}: {result.content}")
    check(result.structured_content is not None, f"{name} has no structured content")
    print(name, result.structured_content)
    return result.structured_content


async def refused(client, name, says, /, **arguments):
    result = await client.call_tool(name, arguments)
    check(result.is_error and says in result.content[0].text, f"{name} {arguments}: {result}")
    print(name, "refused:", result.content[0].text)


async def tools(client):
    print("server", client.server_info.name, client.server_info.version, "protocol", client.protocol_version)
    listed = (await client.list_tools()).tools
    check({t.name for t in listed} == NAMES, f"tools {listed}")
    check(all(t.annotations.title and t.output_schema for t in listed), f"annotations {listed}")

    bucket = await call(client, "create_bucket", name="Python " + MODE, description="Of this test")
    stored = await call(client, "store_memory", text="2025-05-09 Drinks green tea", bucketId=bucket["bucketId"])
    found = await call(client, "search_memories", query="what to drink?")
    check(stored["memoryId"] in [m["memoryId"] for m in found["memories"]], f"not found: {found}")
    listed = await call(client, "get_memories_and_buckets", bucketId=bucket["bucketId"])
    check(len(listed["memories"]) == 1 and len(listed["buckets"]) >= 2, f"listed {listed}")
    await call(client, "update_or_move_memories", memoryId=stored["memoryId"], text="2025-05-10 Drinks black tea")
    await call(client, "list_buckets")
    recalled = await call(client, "recall_chat_history", query="by the window?")
    check("By the window." in recalled["content"] and recalled["sources"], f"recalled {recalled}")
    passages = await call(client, "search_chat_history", query="by the window?", limit=3)
    check(passages["results"][0]["conversationId"] == CONVERSATION, f"passages {passages}")
    read = await call(client, "get_full_conversation", conversationId=CONVERSATION)
    check([m["index"] for m in read["messages"]] == [0, 1], f"read {read}")

    await refused(client, "store_memory", "text is required and must not be blank", text="")
    await refused(client, "get_full_conversation", "conversation not found", conversationId="x")
    try:
        await client.call_tool("no_such_tool", {})
        check(False, "an unknown tool was called")
    except MCPError as e:
        print("unknown tool:", e)

    resources = (await client.list_resources()).resources
    check([str(r.uri) for r in resources] == ["mnemo://conversations/" + CONVERSATION], f"resources {resources}")
    text = (await client.read_resource(resources[0].uri)).contents[0].text
    check("By the window." in text, f"resource {text}")


async def cancel(client):
    """Gives up a call that the server is slow to answer, and continues."""
    with anyio.move_on_after(1) as scope:
        await client.call_tool("recall_chat_history", {"query": "a"})
    check(scope.cancelled_caught, "the call was answered")
    await call(client, "list_buckets")


async def main():
    async with httpx2.AsyncClient(headers={"Authorization": "Bearer " + TOKEN}, timeout=30) as http:
        async with Client(streamable_http_client(URL, http_client=http), mode=MODE) as client:
            await {"tools": tools, "cancel": cancel}[WHAT](client)


asyncio.run(main())
