"""Requests whose bodies nobody reads, as the pieces that a client sends one after another."""

import random
from collections.abc import Callable, Iterator

BODY = 3 * 1024 * 1024
_FILLING = b" " * 65536
# the path, and further fields of the head
Pour = Callable[[random.Random, str, tuple[str, ...]], Iterator[bytes]]


def _head(method: str, path: str, *fields: str) -> bytes:
    return ("\r\n".join((f"{method} {path} HTTP/1.1", "host: a", *fields)) + "\r\n\r\n").encode()


def _post(path: str, size: int, fields: tuple[str, ...]) -> bytes:
    return _head("POST", path, "content-type: application/json", f"content-length: {size}", *fields)


def pipeline(chance: random.Random, path: str, fields: tuple[str, ...] = ()) -> Iterator[bytes]:
    """A watch, and requests behind it."""
    yield _head("GET", f"{path}?watch=1", *fields)
    for _ in range(4):
        yield _post(path, BODY, fields)
        for _ in range(BODY // len(_FILLING)):
            yield _FILLING


def unfinished(chance: random.Random, path: str, fields: tuple[str, ...] = ()) -> Iterator[bytes]:
    """A body that lacks its last byte."""
    yield _post(path, BODY, fields)
    left = BODY - 1
    while left:
        piece = min(left, chance.choice((1, 1000, 16384, 65536)))
        yield _FILLING[:piece]
        left -= piece


def endless(chance: random.Random, path: str, fields: tuple[str, ...] = ()) -> Iterator[bytes]:
    """A body without a length that never ends."""
    yield _head("POST", path, "transfer-encoding: chunked", *fields)
    while True:
        size = chance.choice((1, 5000, 65536))
        yield b"%x\r\n%b\r\n" % (size, _FILLING[:size])
