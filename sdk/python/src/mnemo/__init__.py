"""Python client for Mnemo: memory and chat history for AI applications."""

from . import models
from ._async import AsyncMnemo
from ._sync import Mnemo
from ._version import __version__
from .errors import (
    APIConnectionError,
    APIError,
    APITimeoutError,
    AuthenticationError,
    BadRequestError,
    ConflictError,
    ImportFailedError,
    MnemoError,
    NotFoundError,
    PermissionDeniedError,
    QuotaExceededError,
    RateLimitError,
    TooLargeError,
    UnavailableError,
)

__all__ = [
    "APIConnectionError",
    "APIError",
    "APITimeoutError",
    "AsyncMnemo",
    "AuthenticationError",
    "BadRequestError",
    "ConflictError",
    "ImportFailedError",
    "Mnemo",
    "MnemoError",
    "NotFoundError",
    "PermissionDeniedError",
    "QuotaExceededError",
    "RateLimitError",
    "TooLargeError",
    "UnavailableError",
    "__version__",
    "models",
]
