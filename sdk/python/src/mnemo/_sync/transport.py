# Generated from mnemo/_async/transport.py by hack/sdk/generate.py. DO NOT EDIT.
from __future__ import annotations

from itertools import count
from typing import TypeVar

import time
import httpx
from pydantic import BaseModel

from .._call import Call, connection_error, decode, delay, error_of
from .._config import Config

M = TypeVar("M", bound=BaseModel)


class Transport:
    """Sends calls and retries them."""

    def __init__(self, config: Config, http: httpx.Client) -> None:
        self.config = config
        self.http = http

    def call(self, model: type[M], call: Call) -> M:
        """Returns the response as a model."""
        return decode(model, self.send(call))

    def send(self, call: Call) -> httpx.Response:
        """Returns a successful response with its body."""
        response = self.stream(call)
        try:
            response.read()
        except httpx.RequestError as e:
            raise connection_error(self.config.url, e) from e
        finally:
            response.close()
        return response

    def stream(self, call: Call) -> httpx.Response:
        """Returns a successful response whose body is still to be read. The caller closes it."""
        uncertain = False  # whether an earlier attempt may have been executed
        for attempt in count():
            try:
                response = self._attempt(call)
            except httpx.TransportError as e:
                pause = delay(call, attempt, self.config.max_retries, None)
                if pause is None:
                    raise connection_error(self.config.url, e) from e
                uncertain = True
            else:
                if response.is_success:
                    return response
                pause = delay(call, attempt, self.config.max_retries, response)
                if pause is None:
                    error = error_of(response)
                    if uncertain and call.gone is not None and error.code == "not_found":
                        return httpx.Response(200, json=call.gone, request=response.request)
                    raise error
                uncertain = uncertain or response.status_code >= 500
            time.sleep(pause)
        raise AssertionError("unreachable")

    def _attempt(self, call: Call) -> httpx.Response:
        request = self.http.build_request(
            call.method, self.config.url + call.path, timeout=call.timeout(self.config.timeout), **call.arguments()
        )
        request.headers.encoding = "utf-8"  # of the name of the user
        request.headers.update(self.config.headers())
        response = self.http.send(request, stream=True)
        if not response.is_success:
            try:
                response.read()
            finally:
                response.close()
        return response
