"""What systemd hears from a service."""

import socket
from pathlib import Path

import pytest

from paddock.base.notify import ServiceNotifier


@pytest.mark.parametrize("abstract", [False, True])
def test_systemd_hears_it(tmp_path: Path, abstract: bool) -> None:
    name = f"@paddock-{tmp_path.name}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.settimeout(5)
        listening.bind(f"\0{name[1:]}" if abstract else name)
        environ = {"NOTIFY_SOCKET": name, "HOME": "/"}
        notifier = ServiceNotifier(environ)
        assert environ == {"HOME": "/"}, "a guest would inherit the name"
        notifier.ready("ready at\nhttps://127.0.0.1:7443")
        assert listening.recv(4096) == b"READY=1\nSTATUS=ready at https://127.0.0.1:7443"
        notifier.stopping()
        assert listening.recv(4096) == b"STOPPING=1"


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": "/nowhere/notify"}])
def test_nobody_listens(environ: dict[str, str]) -> None:
    notifier = ServiceNotifier(environ)
    notifier.ready("ready")
    notifier.stopping()
