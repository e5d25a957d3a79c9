"""What waits for a page that is slow."""

import asyncio
import itertools

import msgspec

from paddock.web.live import stream
from paddock.web.live.page import LivePage
from tests.coroutines import timeless


def taken(page: LivePage) -> list[tuple[str, object]]:
    return [(name, msgspec.json.decode(data)) for name, data in page.take()]


def row(number: int) -> bytes:
    return b'{"id":"a","n":%d}' % number


def test_a_slow_page_gets_the_last_word_about_each_row() -> None:
    page = LivePage(["machines"])
    for number in range(1000):
        page.change("machines", {"a": row(number), "b": None if number % 2 else b'{"id":"b"}'})
    assert taken(page) == [("change", {"topic": "machines", "set": [{"id": "a", "n": 999}], "gone": ["b"]})]
    assert page.take() == []


def test_changes_after_a_reset_become_part_of_it() -> None:
    page = LivePage(["machines"])
    page.change("machines", {"old": b"{}"})
    page.reset("machines", {"a": row(1), "b": b'{"id":"b"}'})
    page.change("machines", {"a": row(2), "b": None, "c": b'{"id":"c"}'})
    assert taken(page) == [("reset", {"topic": "machines", "rows": [{"id": "a", "n": 2}, {"id": "c"}]})]


def test_a_reset_does_not_change_the_rows_of_others() -> None:
    page, rows = LivePage(["machines"]), {"a": row(1)}
    page.reset("machines", rows)
    page.change("machines", {"a": None})
    assert rows == {"a": row(1)}


def test_a_server_that_is_back_is_not_lost() -> None:
    page = LivePage(["machines"])
    page.lose("no answer", "2027-01-15T08:00:00Z")
    assert taken(page) == [("lost", {"why": "no answer", "since": "2027-01-15T08:00:00Z"})]
    page.lose("no answer", "2027-01-15T08:00:00Z")
    page.reset("machines", {})
    assert taken(page) == [("reset", {"topic": "machines", "rows": []})]


def test_messages_are_server_sent_events() -> None:
    text = stream.framed([("reset", b"{}"), ("lost", b"{}")], itertools.count(7))
    assert text == b"id: 7\nevent: reset\ndata: {}\n\nid: 8\nevent: lost\ndata: {}\n\n"


class Sink:
    """A connection that takes nothing until the test lets it."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.backlog = 0
        self.closed = False
        self.room = asyncio.Event()
        self.waiting = asyncio.Event()
        self.end = asyncio.Event()

    def write(self, data: bytes) -> None:
        self.written.append(data)

    async def drained(self) -> None:
        self.waiting.set()
        await self.room.wait()

    async def gone(self) -> None:
        await self.end.wait()


@timeless
async def test_nothing_is_written_while_the_page_takes_nothing() -> None:
    page, sink = LivePage(["machines"]), Sink()
    sink.backlog = 1 << 20
    writing = asyncio.create_task(stream.write(page, sink, lambda: True))
    page.change("machines", {"a": row(1)})
    await sink.waiting.wait()
    page.change("machines", {"a": row(2)})
    assert sink.written == [b": open\n\n"]
    sink.room.set()
    while len(sink.written) < 2:
        await asyncio.sleep(0)
    assert sink.written[1] == b'id: 1\nevent: change\ndata: {"topic":"machines","set":[{"id":"a","n":2}],"gone":[]}\n\n'
    sink.end.set()
    await writing


@timeless
async def test_a_stream_ends_with_its_session() -> None:
    page, sink, alive = LivePage(["machines"]), Sink(), [True]
    writing = asyncio.create_task(stream.write(page, sink, lambda: alive[0]))
    await asyncio.sleep(0)
    alive[0] = False
    page.change("machines", {"a": row(1)})
    await writing
    assert sink.written[0] == b": open\n\n"
