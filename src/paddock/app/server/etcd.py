"""A stand-in for etcd where envtest insists on starting one: it answers that it is well, and keeps nothing.

The API server beside it keeps its objects itself. It ends with SIGTERM, as etcd does.
"""

import signal
import socket
import sys
from types import FrameType
from typing import NoReturn

_BODY = b'{"health":"true","reason":""}'
_ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b" % (len(_BODY), _BODY)
_HELP = """usage: etcd --listen-client-urls URL [OPTIONS]

A stand-in that answers GET /health and keeps nothing. Other options of etcd have no effect.

  --listen-client-urls URL  where to answer (default http://127.0.0.1:2379)
  --unsafe-no-fsync         no effect: nothing is written
"""
_DEFAULT = "http://127.0.0.1:2379"
_PATIENCE_SECONDS = 5.0


def main(argv: list[str]) -> int:
    """Answer until told to end."""
    if {"--help", "-h"} & set(argv):
        sys.stdout.write(_HELP)
        return 0
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, _end)
    host, port = address(argv)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family, backlog=64) as server:
        host, port = server.getsockname()[:2]
        sys.stderr.write(f"a stand-in for etcd answers at http://{f'[{host}]' if ':' in host else host}:{port}\n")
        while True:
            connection, _ = server.accept()
            with connection:
                _answer(connection)


def address(argv: list[str]) -> tuple[str, int]:
    """Return the address to listen on: the first of the client URLs."""
    url = _DEFAULT
    for index, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if name.lstrip("-") == "listen-client-urls":
            url = value if equals else argv[index + 1]
    place = url.split(",", maxsplit=1)[0].partition("://")[2].partition("/")[0]
    host, _, port = place.rpartition(":")
    return host.strip("[]"), int(port)


def _answer(connection: socket.socket) -> None:
    connection.settimeout(_PATIENCE_SECONDS)
    try:
        connection.recv(64 * 1024)
        connection.sendall(_ANSWER)
    except OSError:
        # Whoever asked does not want to know any more.
        return


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
