"""Runs a program to its end, with what it is given to read."""

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

# Bound for one answer: QEMU's list of all types is some hundred kilobytes.
_LONGEST = 16 << 20


async def run(argv: Sequence[str], text: bytes, seconds: float) -> tuple[bytes, bytes, int]:
    """Output, errors and exit status of a program; it is ended when it takes longer."""
    pipe = asyncio.subprocess.PIPE
    with _input(text) as stdin:
        process = await asyncio.create_subprocess_exec(*argv, stdin=stdin, stdout=pipe, stderr=pipe, limit=_LONGEST)
    try:
        async with asyncio.timeout(seconds):
            out, err = await process.communicate()
    except TimeoutError:
        return b"", f"no answer within {seconds:g} seconds".encode(), -1
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return out, err, process.returncode or 0


@contextmanager
def _input(text: bytes) -> Iterator[int]:
    """A file, not a pipe: a program may end before a pipe is written to, and uvloop raises an error of no class of its own then."""
    if not text:
        yield asyncio.subprocess.DEVNULL
        return
    descriptor = os.memfd_create("stdin", os.MFD_CLOEXEC)
    with os.fdopen(descriptor, "r+b") as file:
        file.write(text)
        file.seek(0)
        yield descriptor
