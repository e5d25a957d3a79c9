"""Carries out the changes that checks propose: as root, each by a command of the host, and each reported."""

import subprocess
from collections.abc import Callable, Iterable, Sequence

import msgspec

from paddock.app.doctor.check import HostChange, HostCheck
from paddock.app.doctor.judge import shortfalls

_SECONDS = 30
Carry = Callable[[Sequence[str]], str]


class ChangeDone(msgspec.Struct, frozen=True):
    """A change, and the error of its command; "" if it was made."""

    change: HostChange
    error: str = ""


def proposed(checks: Iterable[HostCheck]) -> list[HostChange]:
    """Return the changes that would help, each once."""
    return list(dict.fromkeys(each.outcome.change for each in shortfalls(checks) if each.outcome.change is not None))


def carry_out(changes: Iterable[HostChange], carry: Carry) -> list[ChangeDone]:
    """Make the changes; one that fails does not stop the others."""
    return [ChangeDone(each, carry(each.argv)) for each in changes]


def by_command(argv: Sequence[str]) -> str:
    """Run a command; return its error, or ""."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=_SECONDS)
    except FileNotFoundError:
        return f"there is no {argv[0]} on this host"
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = done.stderr.strip().splitlines()
    return "" if done.returncode == 0 else lines[-1] if lines else f"exit status {done.returncode}"
