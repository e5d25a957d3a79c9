"""Peers that break the rules of HTTP/2, or keep them and do no work: what each sends, and a server that sends it.

The server runs in threads of a process of its own, so that it is never the one that waits:

    python -m tests.kit.hostile.hostilepeers KIND [CERTIFICATE KEY]

It prints its port, and a line for each connection.
"""

import itertools
import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from typing import NamedTuple

SETTINGS = bytes.fromhex("000000040000000000")
ACK = bytes.fromhex("000000040100000000")
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
# :status 200 and content-type application/grpc, as literals without an index
_ANSWER = b"\x88\x00\x0ccontent-type\x10application/grpc"
_PIECE = 1 << 16


def frame(kind: int, flags: int = 0, payload: bytes = b"", stream: int = 0) -> bytes:
    """The bytes of a frame."""
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


class Misbehaviour(NamedTuple):
    """What a peer sends: at first, once its first stream is open, and then without end."""

    begin: bytes = SETTINGS + ACK
    opened: bytes = b""
    endless: bytes = b""
    # `opened` and `endless` come after the other side's request
    waits: bool = False
    leaves: bool = False


_ANSWERED = frame(1, 4, _ANSWER, 1)
KINDS = {
    "ping": Misbehaviour(endless=frame(6, 0, bytes(8))),
    "settings": Misbehaviour(endless=frame(4)),
    "settings-ack": Misbehaviour(endless=frame(4, 1)),
    "window-update": Misbehaviour(endless=frame(8, 0, (1).to_bytes(4, "big"))),
    "unknown": Misbehaviour(endless=frame(0xFA)),
    "priority": Misbehaviour(endless=frame(2, 0, bytes(5), 1)),
    "goaway": Misbehaviour(endless=frame(7, 0, b"\x7f\xff\xff\xff" + bytes(4)), waits=True),
    "empty-data": Misbehaviour(opened=_ANSWERED, endless=frame(0, 0, b"", 1), waits=True),
    "padding": Misbehaviour(opened=_ANSWERED, endless=frame(0, 8, b"\xff" + bytes(255), 1), waits=True),
    "rst-stream": Misbehaviour(endless=frame(3, 0, (8).to_bytes(4, "big"), 1), waits=True),
    "informational": Misbehaviour(endless=frame(1, 4, b"\x08\x03103", 1), waits=True),
    "body": Misbehaviour(opened=_ANSWERED + frame(0, 0, b"\x00\xff\xff\xff\xff", 1), endless=frame(0, 0, bytes(16000), 1), waits=True),
    "continuation": Misbehaviour(opened=frame(1, 0, _ANSWER, 1), endless=frame(9, 0, b"\x00\x01x\x7f\x00" + bytes(127), 1), waits=True),
    # a header of 4,000 bytes, and references to it
    "hpack": Misbehaviour(opened=frame(1, 4, b"\x88\x40\x01x\x7f\xa1\x1e" + bytes(4000) + b"\xbe" * 8000, 1), endless=ACK, waits=True),
    "large-frame": Misbehaviour(endless=b"\xff\xff\xff\x00\x00\x00\x00\x00\x01" + bytes(1000)),
    "http-1.1": Misbehaviour(begin=b"HTTP/1.1 200 OK\r\n\r\n", endless=b"x" * 1000),
    "zero-window": Misbehaviour(begin=frame(4, 0, b"\x00\x04" + bytes(4)) + ACK),
    "no-streams": Misbehaviour(begin=frame(4, 0, b"\x00\x03" + bytes(4)) + ACK),
    "no-settings": Misbehaviour(begin=b""),
    "close": Misbehaviour(leaves=True),
}
# those that send frames without end which do no work
FLOODS = tuple(kind for kind, each in KINDS.items() if each.endless and kind not in ("hpack", "continuation", "large-frame", "http-1.1"))


class HostileServer:
    """Treats each connection in one way."""

    def __init__(self, kind: str, context: ssl.SSLContext | None) -> None:
        self._kind = KINDS[kind]
        self._context = context
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = self._listening.getsockname()[1]

    def serve(self) -> None:
        """Answer for ever."""
        while True:
            connection, _ = self._listening.accept()
            threading.Thread(target=self._treat, args=(connection,), daemon=True).start()

    def _treat(self, plain: socket.socket) -> None:
        connection: socket.socket = plain
        say("connected")
        try:
            if self._context is not None:
                connection = self._context.wrap_socket(plain, server_side=True)
            connection.sendall(self._kind.begin)
            if self._kind.leaves:
                return
            if self._kind.waits:
                _wait_for_request(connection)
            connection.sendall(self._kind.opened)
            for piece in itertools.repeat(self._kind.endless * (_PIECE // max(1, len(self._kind.endless)))):
                if not piece:
                    break
                connection.sendall(piece)
            while connection.recv(_PIECE):
                pass
        except OSError:
            return
        finally:
            connection.close()


def _wait_for_request(connection: socket.socket) -> None:
    """Read until there are headers of a stream."""
    data, at = b"", len(PREFACE)
    while piece := connection.recv(_PIECE):
        data += piece
        while len(data) >= at + 9:
            if data[at + 3] == 1:
                return
            at += 9 + int.from_bytes(data[at : at + 3], "big")


def say(line: str) -> None:
    """Tell whoever started this process."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def endless(kind: str) -> Iterator[bytes]:
    """Reads of what a peer sends after its request or the other's."""
    piece = KINDS[kind].endless
    yield KINDS[kind].opened
    while True:
        yield piece * (_PIECE // len(piece))


def main() -> None:
    """Serve until killed."""
    context = None
    if len(sys.argv) > 2:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[2], sys.argv[3])
        context.set_alpn_protocols(["h2"])
    server = HostileServer(sys.argv[1], context)
    say(str(server.port))
    server.serve()


if __name__ == "__main__":
    main()
