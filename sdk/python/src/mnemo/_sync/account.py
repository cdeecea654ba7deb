# Generated from mnemo/_async/account.py by hack/sdk/generate.py. DO NOT EDIT.
from __future__ import annotations

import os
from typing import BinaryIO

import httpx

from .. import models
from .._call import Call, connection_error
from .._guard import guarded
from .transport import Transport


@guarded
class Account:
    """All data of the user."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def export(self, target: str | os.PathLike[str] | BinaryIO) -> None:
        """Writes a zip file with all data to a path or file."""
        if isinstance(target, (str, os.PathLike)):
            with open(target, "wb") as file:
                self._export(file)
        else:
            self._export(target)

    def _export(self, file: BinaryIO) -> None:
        response = self._transport.stream(Call("GET", "/api/export"))
        try:
            for chunk in response.iter_bytes():
                file.write(chunk)
        except httpx.RequestError as e:
            raise connection_error(self._transport.config.url, e) from e
        finally:
            response.close()

    def delete(self, *, confirm: str) -> models.DeletedAccount:
        """Deletes all data of the user. confirm must be "delete everything"."""
        body = models.DeleteAccountRequest(confirm=confirm)
        return self._transport.call(models.DeletedAccount, Call("DELETE", "/api/account", body=body))
