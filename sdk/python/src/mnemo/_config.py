"""Settings of a client, from arguments and the environment."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

import httpx

from ._version import __version__
from .errors import MnemoError

_LOCAL = ("localhost", "127.0.0.1", "[::1]")
_TOKEN = re.compile("[!-~]+")


@dataclass(frozen=True)
class Config:
    """What every request of a client has in common."""

    url: str
    api_key: str
    user: str | None
    timeout: float
    max_retries: int

    @classmethod
    def load(cls, url: str | None, api_key: str | None, user: str | None, timeout: float, max_retries: int) -> Config:
        url = (url or os.environ.get("MNEMO_URL") or "").strip()
        api_key = (api_key or os.environ.get("MNEMO_API_KEY") or os.environ.get("MNEMO_TOKEN") or "").strip()
        if not url:
            raise MnemoError("url is required: pass url= or set MNEMO_URL, for example to https://mnemo.example.com")
        if not api_key:
            raise MnemoError(
                "api_key is required: pass api_key= or set MNEMO_API_KEY to a token, which the dashboard creates under Connect"
            )
        if not _TOKEN.fullmatch(api_key):
            raise MnemoError('api_key must be a token without spaces, and without "Bearer"')
        return cls(_with_scheme(url).rstrip("/"), api_key, user, timeout, max_retries)

    def headers(self) -> httpx.Headers:
        headers = {"Authorization": f"Bearer {self.api_key}", "User-Agent": f"mnemo-python/{__version__}"}
        if self.user is not None:
            headers["X-Mnemo-User"] = self.user
        return httpx.Headers(headers, encoding="utf-8")


def _with_scheme(url: str) -> str:
    """Adds http for this machine and https for any other one, like the command line."""
    if "://" in url:
        return url
    return ("http://" if url.startswith(_LOCAL) else "https://") + url
