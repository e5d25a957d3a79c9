"""The readiness of an operator's replicas, as one sees it who can reach their probes: the chart's test, or a person."""

import http.client
import socket
import time
from collections.abc import Sequence
from urllib.parse import urlsplit

import msgspec

from paddock.base.errors import Terminal

_PORT = 8081
_SECONDS = 5.0
_AGAIN_SECONDS = 1.0


class ReplicaReadiness(msgspec.Struct, frozen=True):
    """The answer of one replica at /readyz; `address` is empty if the name of the operator has no address."""

    address: str
    ready: bool
    # each failed check, or why there was no answer
    problems: tuple[str, ...] = ()


def wait(url: str, seconds: float) -> Sequence[ReplicaReadiness]:
    """Ask every replica behind a name, again and again for so long or until all are ready; return the last answers."""
    host, port = _place(url)
    end = time.monotonic() + seconds
    while True:
        found = _ask_all(host, port)
        if all(each.ready for each in found) or time.monotonic() >= end:
            return found
        time.sleep(_AGAIN_SECONDS)


def _place(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    try:
        port = parts.port or _PORT
    except ValueError:
        port = 0
    if parts.scheme != "http" or not parts.hostname or not port or parts.path not in ("", "/"):
        raise Terminal(f"{url!r} is no address of probes", fix=f"write http://HOST:PORT, such as http://127.0.0.1:{_PORT}")
    return parts.hostname, port


def _ask_all(host: str, port: int) -> Sequence[ReplicaReadiness]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        return [ReplicaReadiness("", ready=False, problems=(f"cannot find {host}: {error.strerror or error}",))]
    return [_ask(address, port) for address in dict.fromkeys(str(each[4][0]) for each in found)]


def _ask(address: str, port: int) -> ReplicaReadiness:
    connection = http.client.HTTPConnection(address, port, timeout=_SECONDS)
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return ReplicaReadiness(address, ready=False, problems=(f"no answer on port {port}: {error}",))
    finally:
        connection.close()
    if answer.status == 200:
        return ReplicaReadiness(address, ready=True)
    failed = tuple(line.removeprefix("[-]") for line in text.splitlines() if line.startswith("[-]"))
    return ReplicaReadiness(address, ready=False, problems=failed or (f"/readyz answered {answer.status}",))
