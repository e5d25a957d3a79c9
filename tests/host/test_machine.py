"""The foundation of these tests: what is missing skips, what was started ends."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.host.conftest import Spawn, end, wait_until
from tests.host.machine import NEEDS, lacks


def test_each_need_says_why_in_words() -> None:
    for name in NEEDS:
        assert "\n" not in lacks(name)


def test_a_process_and_its_children_end(spawn: Spawn) -> None:
    process = spawn(["sh", "-c", "sleep 100 & exec sleep 100"])
    end(process)
    assert process.returncode is not None
    wait_until("the group is gone", lambda: not _is_there(process.pid))


def _is_there(group: int) -> bool:
    """Return whether a process group has members; a child that ended stays until init has heard of it."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_ports_are_different(free_port: Callable[[], int]) -> None:
    assert len({free_port() for _ in range(20)}) == 20


def test_socket_names_fit(work: Path) -> None:
    assert len(str(work / "a-directory" / "a-rather-long-name.sock")) < 107


@pytest.mark.needs("netns")
def test_a_namespace_has_loopback_alone(netns: str) -> None:
    links = subprocess.run(["ip", "-n", netns, "-o", "link"], check=True, capture_output=True, text=True).stdout
    assert "lo:" in links and "UP" in links
    assert "eth" not in links
