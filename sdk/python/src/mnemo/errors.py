"""The errors that the client raises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from . import models


class MnemoError(Exception):
    """The base class of all errors of this package."""


class APIConnectionError(MnemoError):
    """The server could not be reached, or the connection broke."""


class APITimeoutError(APIConnectionError):
    """The server did not respond in time."""


class ImportFailedError(MnemoError):
    """An import ended with the status failed."""


def failure_of(status: models.Import) -> ImportFailedError:
    """Returns the error of a failed import."""
    reason = status.errors[0].error if status.errors else "no reason was given"
    return ImportFailedError(f"import {status.import_id} failed: {reason}")


class APIError(MnemoError):
    """An error response of the server."""

    def __init__(self, status: int, body: Mapping[str, Any], request_id: str | None, retry_after: float | None) -> None:
        self.status = status
        self.message = str(body.get("error") or f"the server responded with status {status}")
        #: A stable name of the error, such as ``quota_exceeded``. Empty if a proxy responded.
        self.code = str(body.get("code") or "")
        #: The id under which the server logged the request.
        self.request_id = request_id
        #: Seconds to wait before the next attempt, if the server said so.
        self.retry_after = retry_after
        #: The ids that a bulk update rejected.
        self.rejected_ids: list[str] = _texts(body.get("rejectedIds"))
        super().__init__(self.message)

    def __str__(self) -> str:
        details = [str(self.status), self.code, f"request {self.request_id}" if self.request_id else ""]
        return f"{self.message} ({', '.join(filter(None, details))})"


class BadRequestError(APIError):
    """400: the input is invalid."""


class AuthenticationError(APIError):
    """401: the API key is missing, unknown or revoked."""


class PermissionDeniedError(APIError):
    """403: the tenant is suspended, or the key may not do this."""


class QuotaExceededError(PermissionDeniedError):
    """403 with code ``quota_exceeded``."""


class NotFoundError(APIError):
    """404: something that the request names does not exist."""


class ConflictError(APIError):
    """409: the name is already used, or the idempotency key was used for another request."""


class TooLargeError(APIError):
    """413: the body is too large."""


class RateLimitError(APIError):
    """429: the request rate is exceeded."""


class UnavailableError(APIError):
    """503: a dependency of the server is unavailable."""


_BY_STATUS: dict[int, type[APIError]] = {
    400: BadRequestError,
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    413: TooLargeError,
    429: RateLimitError,
    503: UnavailableError,
}
_BY_CODE: dict[str, type[APIError]] = {"quota_exceeded": QuotaExceededError}


def error_for(status: int, body: Mapping[str, Any], request_id: str | None, retry_after: float | None) -> APIError:
    """Returns the error of a response."""
    kind = _BY_CODE.get(str(body.get("code"))) or _BY_STATUS.get(status, APIError)
    return kind(status, body, request_id, retry_after)


def _texts(value: Any) -> list[str]:
    """Returns the texts of a list, and nothing for any other value."""
    return [str(text) for text in value] if isinstance(value, list) else []


def reason(e: Exception) -> str:
    """Returns the message of an error, without the values that it repeats."""
    if isinstance(e, ValidationError):
        errors = e.errors(include_url=False, include_context=False, include_input=False)
        return "; ".join(f"{'.'.join(map(str, found['loc']))}: {found['msg']}" for found in errors)
    if isinstance(e, KeyError):
        return f"{e} is missing"
    if isinstance(e, RecursionError):
        return "the value or the response is nested too deeply"
    return str(e) or type(e).__name__
