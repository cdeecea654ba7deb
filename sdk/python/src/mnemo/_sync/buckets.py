# Generated from mnemo/_async/buckets.py by hack/sdk/generate.py. DO NOT EDIT.
from __future__ import annotations

from typing import List

from pydantic import RootModel

from .. import models
from .._call import Call, path
from .._guard import guarded
from .transport import Transport


class _Buckets(RootModel[List[models.Bucket]]):
    pass


@guarded
class Buckets:
    """Groups of memories."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self, name: str, *, description: str | None = None, idempotency_key: str | None = None
    ) -> models.CreatedBucket:
        """Creates a bucket."""
        body = models.CreateBucketRequest(name=name, description=description)
        call = Call("POST", "/api/buckets", body=body, idempotency_key=idempotency_key)
        return self._transport.call(models.CreatedBucket, call)

    def list(self) -> List[models.Bucket]:
        """Returns all buckets."""
        return (self._transport.call(_Buckets, Call("GET", "/api/buckets"))).root

    def update(self, bucket_id: int | str, *, name: str | None = None, description: str | None = None) -> None:
        """Changes the name or the description of a bucket."""
        body = models.UpdateBucketRequest(name=name, description=description)
        self._transport.send(Call("PATCH", path("/api/buckets/{}", bucket_id), body=body))

    def delete(self, bucket_id: int | str) -> models.DeletedBucket:
        """Deletes a bucket and moves its memories to the default bucket."""
        gone = {"message": "Bucket deleted", "movedCount": 0}
        call = Call("DELETE", path("/api/buckets/{}", bucket_id), gone=gone)
        return self._transport.call(models.DeletedBucket, call)
