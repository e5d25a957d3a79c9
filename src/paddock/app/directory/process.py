"""The process that serves a directory: its ID and start time, so that a reused process ID is not mistaken for a server."""

import os
from pathlib import Path
from typing import Any

import msgspec

from paddock.app.directory.paths import DataPaths


class RunningServer(msgspec.Struct, frozen=True):
    pid: int
    # of /proc: ticks since the boot of the host
    started: int
    address: str
    # it answers, and looks after machines where it is to
    ready: bool = True
    # why it does not look after machines, once that is known
    problem: str = ""
    # what machines cannot have on this host, on one line
    limits: str = ""
    # a link that opens the web console, once; empty without one
    console: str = ""


def started_at(pid: int) -> int | None:
    """Return the start time of a process; None when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The command name may hold anything, parentheses and spaces included; what follows it does not.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else int(fields[19])


def this(address: str, **more: Any) -> RunningServer:
    """Return this very process as a server; `more` are further members."""
    pid = os.getpid()
    return RunningServer(pid, started_at(pid) or 0, address, **more)


def write(places: DataPaths, server: RunningServer) -> None:
    """Say that a process serves the directory."""
    fresh = places.pid.with_name(places.pid.name + ".new")
    fresh.write_bytes(msgspec.json.encode(server))
    fresh.replace(places.pid)


def find(places: DataPaths) -> RunningServer | None:
    """The server of a directory, if it is alive."""
    try:
        found = msgspec.json.decode(places.pid.read_bytes(), type=RunningServer)
    except (OSError, ValueError):
        return None
    return found if is_alive(found) else None


def is_alive(running_server: RunningServer) -> bool:
    """Return whether this very process still exists."""
    return started_at(running_server.pid) == running_server.started
