"""The messages of a service to systemd: ready, stopping, and one line about its state (sd_notify(3)). Without systemd, it sends none."""

import os
import socket
from collections.abc import MutableMapping

_SOCKET = "NOTIFY_SOCKET"


class ServiceNotifier:
    """The socket that systemd named. Nobody inherits its name: a guest that outlives the service must not speak for it."""

    def __init__(self, environ: MutableMapping[str, str] = os.environ) -> None:
        self._address = environ.pop(_SOCKET, "")

    def ready(self, status: str) -> None:
        """Say that clients are answered, and in which state."""
        self._send(f"READY=1\nSTATUS={_line(status)}")

    def stopping(self) -> None:
        """Say that the end has begun."""
        self._send("STOPPING=1")

    def _send(self, text: str) -> None:
        if not self._address:
            return
        # A name that begins with @ is one of the abstract namespace.
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.connect(address)
                sender.sendall(text.encode())
        except OSError:
            # Whoever listened is gone; a service does not fail because of it.
            return


def _line(text: str) -> str:
    return " ".join(text.split())
