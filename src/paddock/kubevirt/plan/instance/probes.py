"""Probes: when a machine counts as ready, and when as dead. The controller makes the attempts."""

from typing import Literal
from urllib.parse import quote

import msgspec

from paddock.kubernetes.meta.pods import HTTPGetAction
from paddock.kubevirt.kinds.access import Probe

Way = Literal["exec", "ping", "http", "tcp"]
_FIRST_LINE_BYTES = 1024


class ProbeSchedule(msgspec.Struct, frozen=True):
    """The period of a probe, and how many results in a row change the verdict. Zero and absent mean the default."""

    delay: int
    period: int
    timeout: int
    successes: int
    failures: int


class ProbeVerdict(msgspec.Struct, frozen=True):
    """The verdict of the results so far. A machine is not ready before a probe has succeeded, and not dead before one has failed."""

    good: bool
    in_a_row: int = 0


def schedule_of(probe: Probe) -> ProbeSchedule:
    """The schedule of a probe, with defaults."""
    return ProbeSchedule(
        delay=probe.initialDelaySeconds or 0,
        period=probe.periodSeconds or 10,
        timeout=probe.timeoutSeconds or 1,
        successes=probe.successThreshold or 1,
        failures=probe.failureThreshold or 3,
    )


def way_of(probe: Probe) -> Way:
    """Return the method of the probe."""
    if probe.exec is not None:
        return "exec"
    if probe.guestAgentPing is not None:
        return "ping"
    return "http" if probe.httpGet is not None else "tcp"


def judged(before: ProbeVerdict, answered: bool, schedule: ProbeSchedule) -> ProbeVerdict:
    """The verdict after one more result."""
    if answered == before.good:
        return msgspec.structs.replace(before, in_a_row=0)
    count = before.in_a_row + 1
    needed = schedule.successes if answered else schedule.failures
    return ProbeVerdict(answered) if count >= needed else msgspec.structs.replace(before, in_a_row=count)


def suppressed(way: Way, *, paused: bool, busy: bool) -> bool:
    """A ping says nothing about a guest that was stopped on purpose: while it is paused, dumped, or snapshots are made of it."""
    return way == "ping" and (paused or busy)


def http_request(action: HTTPGetAction) -> bytes:
    """The bytes of the GET of a probe. What users wrote cannot end a line in it."""
    headers = {"Host": action.host or "localhost", "User-Agent": "paddock-probe", "Accept": "*/*", "Connection": "close"}
    headers.update((each.name, each.value) for each in action.httpHeaders or ())
    path = quote(action.path or "/", safe="/:?#[]@!$&'()*+,;=%-._~")
    lines = [
        f"GET {path if path.startswith('/') else '/' + path} HTTP/1.1",
        *(f"{_line(name)}: {_line(value)}" for name, value in headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "replace")


def is_http_success(line: bytes) -> bool:
    """Return true if the first line of an answer is neither an error of the client nor of the server."""
    parts = line[:_FIRST_LINE_BYTES].split()
    return len(parts) >= 2 and parts[0].startswith(b"HTTP/") and parts[1].isdigit() and 200 <= int(parts[1]) < 400


def _line(text: str) -> str:
    return "".join(each for each in text if each.isprintable())
