"""Calls of the API without I/O: what to send, what to retry, and what a response means."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote
from uuid import uuid4

import httpx
from pydantic import BaseModel

from ._upload import Upload
from .errors import APIConnectionError, APIError, APITimeoutError, MnemoError, error_for, reason

M = TypeVar("M", bound=BaseModel)

_RETRIED = frozenset({408, 429, 502, 503, 504})
_FIRST_DELAY, _LONGEST_DELAY = 0.5, 8.0
_LONGEST_RETRY_AFTER = 120.0
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


@dataclass
class Call:
    """One logical request. All its attempts have the same Idempotency-Key."""

    method: str
    path: str
    params: Mapping[str, Any] = field(default_factory=dict)
    body: BaseModel | None = None
    uploads: Sequence[Upload] = ()
    form: Mapping[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    idempotency_key: str | None = None
    #: Seconds without data after which a body ends, if they are more than the timeout.
    idle: float = 0
    #: The response to a deletion that an earlier attempt executed, so that this one does not find what it deletes.
    gone: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.method == "POST":
            self.headers["Idempotency-Key"] = self.idempotency_key or str(uuid4())

    def arguments(self) -> dict[str, Any]:
        """Returns the arguments of the next attempt for httpx."""
        params = {name: _text(value) for name, value in self.params.items() if value is not None}
        arguments: dict[str, Any] = {"params": params, "headers": self.headers}
        if self.body is not None:
            arguments["json"] = self.body.model_dump(mode="json", by_alias=True, exclude_none=True)
        if self.uploads:
            names = ["file", *["files"] * (len(self.uploads) - 1)]
            arguments["files"] = [(name, upload.next_attempt()) for name, upload in zip(names, self.uploads)]
            arguments["data"] = dict(self.form)
        return arguments

    def timeout(self, timeout: float) -> httpx.Timeout:
        return httpx.Timeout(timeout, read=max(timeout, self.idle))

    def repeatable(self) -> bool:
        return all(upload.repeatable for upload in self.uploads)


def listed(values: Sequence[str]) -> list[str]:
    """Returns a list. A single string is one value, not a sequence of characters."""
    return [values] if isinstance(values, str) else [*values]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def path(template: str, *ids: str | int) -> str:
    """Returns a path with escaped ids."""
    return template.format(*(quote(str(i), safe="") for i in ids))


def decode(model: type[M], response: httpx.Response) -> M:
    """Returns the body of a response."""
    try:
        return model.model_validate_json(response.content)
    except ValueError as e:
        raise MnemoError(f"unexpected response to {response.request.url}: {reason(e)}") from e


def error_of(response: httpx.Response) -> APIError:
    """Returns the error of a response whose body was read."""
    try:
        body = response.json()
    except (ValueError, RecursionError):  # a proxy responded
        body = {}
    return error_for(
        response.status_code,
        body if isinstance(body, dict) else {},
        response.headers.get("X-Request-Id"),
        retry_after(response),
    )


def connection_error(url: str, e: httpx.RequestError) -> MnemoError:
    """Returns the error of a request without a response."""
    if isinstance(e, httpx.TimeoutException):
        return APITimeoutError(f"{url} did not respond in time ({type(e).__name__})")
    return APIConnectionError(f"connection to {url} failed: {str(e) or type(e).__name__}")


def retry_after(response: httpx.Response) -> float | None:
    value = response.headers.get("Retry-After", "")
    return float(value) if _SECONDS.fullmatch(value) else None


def delay(call: Call, attempt: int, max_retries: int, response: httpx.Response | None) -> float | None:
    """Returns the seconds before the next attempt, or None if there is none. response is None after a connection error."""
    if attempt >= max_retries or not call.repeatable():
        return None
    backoff: float = min(_FIRST_DELAY * 2**attempt, _LONGEST_DELAY) * random.uniform(0.5, 1)
    if response is None:
        return backoff
    if response.status_code not in _RETRIED:
        return None
    told = retry_after(response)
    if told is None:
        return backoff
    return told if told <= _LONGEST_RETRY_AFTER else None
