"""Turns every failure of a method into an error of this package."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from functools import wraps
from typing import Any, TypeVar

from .errors import MnemoError, reason

T = TypeVar("T")


def guarded(cls: type[T]) -> type[T]:
    """Decorates a class whose constructor and public methods raise only MnemoError, and OSError for a file of the caller.

    A call that does not match the signature is still a TypeError, as for every function.
    """
    for name, method in list(vars(cls).items()):
        if inspect.isfunction(method) and (name == "__init__" or not name.startswith("_")):
            setattr(cls, name, _guard(method, cls.__name__ if name == "__init__" else name))
    return cls


def _guard(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    signature = inspect.signature(method)

    @contextmanager
    def translated(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[None]:
        arguments = signature.bind(*args, **kwargs).arguments
        try:
            _refuse_awaitables(arguments)
            yield
        except (MnemoError, OSError):
            raise
        except Exception as e:
            raise MnemoError(f"{name}: {reason(e)}") from e

    @wraps(method)
    async def coroutine(*args: Any, **kwargs: Any) -> Any:
        with translated(args, kwargs):
            return await method(*args, **kwargs)

    @wraps(method)
    async def async_generator(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        with translated(args, kwargs):
            async with aclosing(method(*args, **kwargs)) as items:
                async for item in items:
                    yield item

    @wraps(method)
    def generator(*args: Any, **kwargs: Any) -> Iterator[Any]:
        with translated(args, kwargs):
            yield from method(*args, **kwargs)

    @wraps(method)
    def function(*args: Any, **kwargs: Any) -> Any:
        with translated(args, kwargs):
            return method(*args, **kwargs)

    if inspect.isasyncgenfunction(method):
        return async_generator
    if inspect.iscoroutinefunction(method):
        return coroutine
    return generator if inspect.isgeneratorfunction(method) else function


def _refuse_awaitables(arguments: Mapping[str, Any]) -> None:
    for name, value in arguments.items():
        if inspect.iscoroutine(value):
            value.close()
        if inspect.isawaitable(value):
            raise MnemoError(f"{name} is a coroutine: use the result of await")
        if inspect.isasyncgen(value):
            raise MnemoError(f"{name} is an asynchronous iterator: pass a list, [x async for x in …]")
