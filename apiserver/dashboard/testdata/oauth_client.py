"""Connects Python's official MCP client by OAuth, without a token.

usage: oauth_client.py URL NAME PASSWORD

Its user signs in and answers by plain HTTP forms. Ends with 0 when everything
was as it should be.
"""

import asyncio
import sys
from html.parser import HTMLParser
from urllib.parse import parse_qs, urlparse

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

URL, NAME, PASSWORD = sys.argv[1:]
CALLBACK = "http://127.0.0.1:9/callback"


def check(good, what):
    if not good:
        raise SystemExit(f"oauth_client.py: {what}")


class Hidden(HTMLParser):
    """The hidden fields of a page."""

    def __init__(self, text):
        super().__init__()
        self.fields = {}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        a = dict(attributes)
        if tag == "input" and a.get("type") == "hidden":
            self.fields[a["name"]] = a["value"]


class Memory:
    """Keeps tokens and the registration, as an app would in a file."""

    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class User:
    """Who is asked."""

    asked = 0

    async def open(self, address):
        self.asked += 1
        async with httpx2.AsyncClient(headers={"Sec-Fetch-Site": "same-origin"}, timeout=30) as browser:
            page = await browser.get(address, follow_redirects=True)
            check(page.url.path == "/sign-in", f"{page.url} before signing in")
            form = Hidden(page.text).fields | {"name": NAME, "password": PASSWORD}
            page = await browser.post(URL + "/sign-in", data=form, follow_redirects=True)
            check(page.status_code == 200 and "Python client" in page.text, f"{page.url}: {page.text}")
            form = Hidden(page.text).fields | {"answer": "allow", "asked": "yes"}
            answer = await browser.post(URL + "/authorize", data=form)
            check(answer.headers["location"].startswith(CALLBACK), f"{answer.status_code} {answer.headers}")
            self.query = parse_qs(urlparse(answer.headers["location"]).query)

    async def answer(self):
        return AuthorizationCodeResult(code=self.query["code"][0], state=self.query["state"][0], iss=self.query["iss"][0])


def provider(memory, user):
    metadata = OAuthClientMetadata(client_name="Python client", redirect_uris=[CALLBACK],
                                   grant_types=["authorization_code", "refresh_token"])
    return OAuthClientProvider(URL + "/mcp", metadata, memory, user.open, user.answer)


async def connect(auth):
    async with httpx2.AsyncClient(auth=auth, timeout=30) as http:
        async with Client(streamable_http_client(URL + "/mcp", http_client=http)) as client:
            check(len((await client.list_tools()).tools) == 9, "tools are missing")
            result = await client.call_tool("list_buckets", {})
            check(not result.is_error, f"list_buckets: {result.content}")


async def main():
    memory, user = Memory(), User()
    await connect(provider(memory, user))
    check(user.asked == 1 and memory.tokens.refresh_token, f"asked {user.asked} times, given {memory.tokens}")

    # Started again when its access is over, it refreshes and asks nobody.
    first = memory.tokens
    again = provider(memory, user)
    await again._initialize()
    again.context.token_expiry_time = 1
    await connect(again)
    check(user.asked == 1, f"asked {user.asked} times")
    check(memory.tokens.access_token != first.access_token, "the access was not refreshed")


asyncio.run(main())
