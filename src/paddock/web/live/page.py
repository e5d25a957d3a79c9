"""One open page: what it has not received yet. A slow page gets fewer, larger changes; never more than the last word about each row."""

import asyncio
from collections.abc import Collection, Iterator, Mapping

import msgspec

from paddock.web.live.topicnames import WebTopic

# A row as JSON; None is a row that is gone.
RowChange = Mapping[str, bytes | None]
Message = tuple[str, bytes]


class LivePage:
    """The messages for one page. The live set adds to it, the stream takes from it."""

    def __init__(self, topics: Collection[WebTopic]) -> None:
        self.topics = tuple(topics)
        self._changes: dict[WebTopic, dict[str, bytes | None]] = {}
        self._resets: dict[WebTopic, dict[str, bytes]] = {}
        self._lost: bytes | None = None
        self._arrived = asyncio.Event()

    def reset(self, topic: WebTopic, rows: Mapping[str, bytes]) -> None:
        """All rows of a topic anew; what was to be sent of it before is dropped."""
        self._changes.pop(topic, None)
        self._resets[topic] = dict(rows)
        # The server is there again, or the page would get no rows.
        self._lost = None
        self._arrived.set()

    def change(self, topic: WebTopic, change: RowChange) -> None:
        waiting = self._resets.get(topic)
        if waiting is None:
            self._changes.setdefault(topic, {}).update(change)
        else:
            for name, row in change.items():
                if row is None:
                    waiting.pop(name, None)
                else:
                    waiting[name] = row
        self._arrived.set()

    def lose(self, why: str, since: str) -> None:
        self._lost = msgspec.json.encode({"why": why, "since": since})
        self._arrived.set()

    async def wait(self) -> None:
        """Wait for something to send."""
        await self._arrived.wait()

    def take(self) -> list[Message]:
        """Return what is to be sent, as names of events and their JSON, and forget it."""
        self._arrived.clear()
        resets, changes, lost = self._resets, self._changes, self._lost
        self._resets, self._changes, self._lost = {}, {}, None
        return list(_messages(resets, changes, lost))


def _messages(
    resets: Mapping[WebTopic, Mapping[str, bytes]], changes: Mapping[WebTopic, RowChange], lost: bytes | None
) -> Iterator[Message]:
    for topic, rows in resets.items():
        yield "reset", b'{"topic":"%b","rows":[%b]}' % (topic.encode(), b",".join(rows.values()))
    for topic, change in changes.items():
        new = [row for row in change.values() if row is not None]
        gone = msgspec.json.encode([name for name, row in change.items() if row is None])
        yield "change", b'{"topic":"%b","set":[%b],"gone":%b}' % (topic.encode(), b",".join(new), gone)
    if lost is not None:
        yield "lost", lost
