"""Programs that are run to their end."""

import asyncio
import sys
from pathlib import Path

import pytest
import uvloop

from paddock.engine.host.subprocesses import run
from tests.unit.engine.host.test_kvm import program


def test_a_program_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    out, err, code = asyncio.run(run([str(program(tmp_path, "exec sleep 60"))], b"", 0.2))
    assert (out, code) == (b"", -1)
    assert b"no answer within 0.2 seconds" in err


def test_a_program_without_input_reads_nothing_of_ours() -> None:
    out, _, code = asyncio.run(run([sys.executable, "-c", "import os; print(os.readlink('/proc/self/fd/0'))"], b"", 60))
    assert (out.strip(), code) == (b"/dev/null", 0)


@pytest.mark.parametrize("loop_factory", [uvloop.new_event_loop, asyncio.new_event_loop])
def test_a_program_gets_its_whole_input(loop_factory: type[asyncio.AbstractEventLoop]) -> None:
    text = b"words of some length\n" * 100_000
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        out, _, code = runner.run(run([sys.executable, "-c", "import sys; print(len(sys.stdin.buffer.read()))"], text, 60))
    assert (int(out), code) == (len(text), 0)


@pytest.mark.parametrize("loop_factory", [uvloop.new_event_loop, asyncio.new_event_loop])
def test_a_program_that_ends_before_it_reads_has_an_exit_status(loop_factory: type[asyncio.AbstractEventLoop]) -> None:
    async def often() -> list[tuple[bytes, bytes, int]]:
        return [await run(["/bin/false"], b"words\n" * 100_000, 60) for _ in range(20)]

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        assert runner.run(often()) == [(b"", b"", 1)] * 20
