"""The transport below a client: it takes one request and returns one answer, or a stream of bytes."""

from typing import Protocol

import msgspec

Headers = tuple[tuple[str, str], ...]


class TransportRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request. `target` is path and query, encoded as it is sent."""

    method: str
    target: str
    body: bytes = b""
    content_type: str = "application/json"
    # virt-api's subresources name no type that they answer with, and take only requests that accept any
    accept: str = "application/json, */*"
    # until the answer is complete; of a stream, until it begins
    seconds: float = 30.0


class TransportResponse(msgspec.Struct, frozen=True):
    """A complete answer. Header names are lower case."""

    status: int
    headers: dict[str, str]
    body: bytes
    # the words beside the status, which some servers say everything with
    reason: str = ""


class ResponseStream(Protocol):
    """An answer that comes piece by piece."""

    status: int
    headers: dict[str, str]

    async def read(self) -> bytes:
        """Return the next data; empty at the regular end. Raises `Unreachable` when the stream was cut."""

    def close(self) -> None: ...


class Transport(Protocol):
    async def send(self, ask: TransportRequest) -> TransportResponse:
        """The answer, whatever its status; raises `Unreachable`."""

    async def stream(self, ask: TransportRequest) -> ResponseStream:
        """The answer, once its head is there; raises `Unreachable`."""

    async def close(self) -> None: ...
