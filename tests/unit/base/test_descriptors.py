"""Writing to file descriptors that take a part at a time."""

import os

import pytest

from paddock.base.descriptors import write_all


def test_a_file_that_takes_a_part_at_a_time_gets_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    parts: list[bytes] = []

    def write(descriptor: int, data: memoryview) -> int:
        parts.append(bytes(data[:3]))
        return min(3, len(data))

    monkeypatch.setattr(os, "write", write)
    write_all(7, b"abcdefgh")
    assert parts == [b"abc", b"def", b"gh"]
