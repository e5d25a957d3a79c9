"""`paddock status --operator`: every replica behind a name, over sockets of this host."""

import io
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from paddock.app.commands import status
from paddock.base.errors import Terminal
from paddock.cli.console import Console

READY = "[+]caches ok\nok\n"
LACKING = "[-]definitions machines.vitistack.io/v1alpha1 is not served: install it\n[+]program ok\nfailed\n"


class Replica(BaseHTTPRequestHandler):
    """Answers with the next of its pages, and with the last one from then on."""

    def do_GET(self) -> None:
        pages = self.server.pages  # type: ignore[attr-defined]
        code, text = pages.pop(0) if len(pages) > 1 else pages[0]
        body = text.encode() if self.path == "/readyz" else b""
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        return


@contextmanager
def replica(address: str, port: int, *pages: tuple[int, str]) -> Iterator[int]:
    with ThreadingHTTPServer((address, port), Replica) as server:
        server.pages = list(pages)  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def asked(*given: str) -> tuple[int, str]:
    out = io.BytesIO()
    code = status.run(list(given), Console(out, io.BytesIO()))
    return code, out.getvalue().decode()


def named(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Let a Service have these addresses."""

    real = socket.getaddrinfo

    def resolve(host: str, *given: Any, **more: Any) -> Any:
        named = host == "paddock-test.paddock-system.svc"
        return [found for each in addresses for found in real(each, *given, **more)] if named else real(host, *given, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


def test_every_replica_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.getaddrinfo
    with replica("127.0.0.1", 0, (200, READY)) as port, replica("127.0.0.2", port, (500, LACKING)):
        named(monkeypatch, "127.0.0.1", "127.0.0.2", "127.0.0.1")
        url = f"--operator=http://paddock-test.paddock-system.svc:{port}"
        problem = "definitions machines.vitistack.io/v1alpha1 is not served: install it"
        assert asked(url) == (1, f"127.0.0.1: ready\n127.0.0.2: not ready: {problem}\n")
        code, text = asked(url, "-o", "json")
        assert (code, json.loads(text)) == (
            1,
            [
                {"address": "127.0.0.1", "ready": True, "problems": []},
                {"address": "127.0.0.2", "ready": False, "problems": [problem]},
            ],
        )
        monkeypatch.setattr(socket, "getaddrinfo", real)
        named(monkeypatch, "127.0.0.1")
        assert asked(url) == (0, "127.0.0.1: ready\n")


def test_it_waits_until_all_are_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("paddock.app.operator.readiness.time.sleep", pauses.append)
    with replica("127.0.0.1", 0, (500, LACKING), (503, ""), (200, READY)) as port:
        assert asked(f"--operator=http://127.0.0.1:{port}", "--wait=10m") == (0, "127.0.0.1: ready\n")
    assert len(pauses) == 2


def test_what_does_not_answer_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    with replica("127.0.0.1", 0, (503, "")) as port:
        assert asked(f"--operator=http://127.0.0.1:{port}") == (1, "127.0.0.1: not ready: /readyz answered 503\n")
    code, text = asked(f"--operator=http://127.0.0.1:{port}")
    assert code == 1 and text.startswith(f"127.0.0.1: not ready: no answer on port {port}: ")

    def nowhere(*given: Any, **more: Any) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    assert asked("--operator=http://paddock.example:8081") == (1, "not ready: cannot find paddock.example: Name or service not known\n")


@pytest.mark.parametrize("url", ["paddock:8081", "https://paddock:8081", "http://", "http://paddock:99999", "http://paddock/readyz"])
def test_addresses_that_are_refused(url: str) -> None:
    with pytest.raises(Terminal) as error:
        asked(f"--operator={url}")
    assert "http://127.0.0.1:8081" in error.value.fix
