"""Waiting for what QEMU tells on its own account."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Match = Callable[[str, Mapping[str, Any]], bool]


class Events:
    def __init__(self) -> None:
        self._waiting: list[tuple[Match, asyncio.Future[tuple[str, Mapping[str, Any]]]]] = []

    @contextlib.contextmanager
    def expect(self, match: Match) -> "Iterator[asyncio.Future[tuple[str, Mapping[str, Any]]]]":
        """The next event that matches. Enter it before the command that brings the event about."""
        future: asyncio.Future[tuple[str, Mapping[str, Any]]] = asyncio.get_running_loop().create_future()
        entry = (match, future)
        self._waiting.append(entry)
        try:
            yield future
        finally:
            self._waiting.remove(entry)
            future.cancel()

    def handle(self, name: str, data: Mapping[str, Any]) -> None:
        for match, future in tuple(self._waiting):
            if not future.done() and match(name, data):
                future.set_result((name, data))
