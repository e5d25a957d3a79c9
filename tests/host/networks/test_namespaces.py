"""Processes in network namespaces print without harm, whoever captures the output of the test."""

import os
import signal
import subprocess
from collections.abc import Callable

import pytest

from tests.host.networks.namespaces import Child, Lab

pytestmark = pytest.mark.needs("netns")


def print_everywhere() -> int:
    """Print as functions, programs and C libraries do; return a number."""
    print("from a function")
    subprocess.run(["echo", "from a program"], check=True)
    os.write(2, b"from a library\n")
    # More than a pipe holds that nobody reads.
    print("x" * (1 << 20), end="")
    return 7


def raise_error() -> None:
    """Print, and raise."""
    print_everywhere()
    raise ValueError("in the end")


def kill_itself() -> None:
    """Print, and be ended."""
    print_everywhere()
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_child_that_prints_returns_its_result(lab: Lab) -> None:
    assert Child(lab.host, print_everywhere).result() == 7


@pytest.mark.parametrize(("ending", "why"), [(raise_error, "ValueError: in the end"), (kill_itself, "the process was ended")])
def test_a_child_that_fails_shows_what_it_printed(lab: Lab, ending: Callable[[], None], why: str) -> None:
    with pytest.raises(AssertionError) as caught:
        Child(lab.host, ending).result()
    for line in (why, "from a function", "from a program", "from a library"):
        assert f"{line}\n" in str(caught.value)
