# Generated from mnemo/_async/__init__.py by hack/sdk/generate.py. DO NOT EDIT.
"""The synchronous client."""

from .client import Mnemo

__all__ = ["Mnemo"]
