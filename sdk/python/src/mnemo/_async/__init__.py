"""The asynchronous client. The synchronous one is generated from it."""

from .client import AsyncMnemo

__all__ = ["AsyncMnemo"]
