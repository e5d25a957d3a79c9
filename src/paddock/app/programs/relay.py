"""The log of a child in the log of the server: each line with the Provider's name, and with no secret."""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from paddock.contract import errortext

_LOG = logging.getLogger(__name__)
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR, "critical": logging.ERROR}
_LONGEST_LINE = 64 << 10
# A child that writes more than this in a minute is cut off until the minute is over.
_MOST_LINES, _MINUTE = 1000, 60.0
_OWN = ("level", "message", "timestamp", "traceback")


class LogRelay:
    """Reads a child's log. `last` is its last line of an error."""

    def __init__(self, provider: str, secrets: Mapping[str, bytes]) -> None:
        self._provider = provider
        self._secrets = _texts(secrets)
        self._counted, self._since = 0, 0.0
        self.last = ""

    async def run(self, descriptor: int) -> None:
        """Pass lines on until the child has closed its log."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_LONGEST_LINE)
        pipe = open(descriptor, "rb", buffering=0)  # noqa: SIM115 - the transport closes it
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        try:
            while True:
                try:
                    line = await reader.readuntil(b"\n")
                except asyncio.IncompleteReadError as error:
                    if error.partial:
                        self._pass_on(error.partial, loop.time())
                    return
                except asyncio.LimitOverrunError as error:
                    await reader.readexactly(error.consumed)
                    continue
                self._pass_on(line, loop.time())
        finally:
            transport.close()

    def _pass_on(self, line: bytes, now: float) -> None:
        level, text, fields = self._read(line)
        if level >= logging.ERROR and text:
            self.last = text
        if now - self._since >= _MINUTE:
            self._counted, self._since = 0, now
        self._counted += 1
        if self._counted <= _MOST_LINES and text:
            _LOG.log(level, "provider: %s", text, extra={"provider": self._provider, **fields})
        elif self._counted == _MOST_LINES + 1:
            _LOG.warning("log of the provider cut off until the minute is over", extra={"provider": self._provider})

    def _read(self, line: bytes) -> tuple[int, str, dict[str, str]]:
        text = line.decode("utf-8", "replace").strip()
        try:
            data: Any = json.loads(text) if text.startswith("{") else None
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict) or "message" not in data:
            # What is no line of a log is the last word of an interpreter or of a library.
            return logging.ERROR, self._clean(text), {}
        fields = {f"provider_{name}": self._clean(str(value)) for name, value in data.items() if name not in _OWN}
        return _LEVELS.get(str(data.get("level")), logging.INFO), self._clean(str(data["message"])), fields

    def _clean(self, text: str) -> str:
        return errortext.cleaned(text, self._secrets)


def _texts(secrets: Mapping[str, bytes]) -> Sequence[str]:
    """The values, and their lines, as they may stand in a log."""
    found: dict[str, None] = {}
    for value in secrets.values():
        text = value.decode("utf-8", "replace").strip()
        found[text] = None
        found |= dict.fromkeys(line.strip() for line in text.splitlines() if len(line.strip()) >= 12)
    return tuple(found)
