"""The web console as people start it: beside a server, and inside one."""

import contextlib
import http.client
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.unit.app.test_starting import SECRET_FREE, paddock

LINK = re.compile(r"http://127\.0\.0\.1:(\d+)(/login/[\w-]{43})\b")


def _opens(text: str) -> bool:
    """Return whether the link of a text opens a session whose page and API answer."""
    found = LINK.search(text)
    assert found is not None, text
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=60)) as connection:
        connection.request("GET", found[2])
        answer = connection.getresponse()
        answer.read()
        cookie = (answer.getheader("set-cookie") or "").partition(";")[0]
        connection.request("GET", "/", headers={"cookie": cookie})
        page = connection.getresponse().read()
        connection.request("GET", "/console/v1/me", headers={"cookie": cookie})
        me = connection.getresponse().read()
    return answer.status == 200 and b"<!doctype html>" in page and b'"user":"admin"' in me


def test_a_control_plane_with_a_console(tmp_path: Path) -> None:
    said = paddock("up", f"--dir={tmp_path / 'new'}", "--listen=:0", "--network=user", "--ui=127.0.0.1:0", "--detach")
    try:
        assert said.returncode == 0, said.stderr
        assert _opens(said.stderr)
    finally:
        paddock("down", f"--dir={tmp_path / 'new'}")


def test_a_console_that_others_could_use_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    said = paddock("up", f"--dir={tmp_path / 'new'}", "--listen=:0", "--ui=0.0.0.0:0")
    assert (said.returncode, (tmp_path / "new").exists()) == (2, False)
    assert "a link gives the rights of your kubeconfig" in said.stderr


def test_a_console_beside_a_server(tmp_path: Path) -> None:
    assert paddock("apiserver", f"--dir={tmp_path}", "--listen=:0", "--detach").returncode == 0
    command = [sys.executable, "-m", "paddock.app", "ui", "--listen=127.0.0.1:0", f"--kubeconfig={tmp_path / 'kubeconfig'}"]
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=SECRET_FREE) as child:
            assert child.stdout is not None
            try:
                assert _opens(child.stdout.readline())
            finally:
                os.kill(child.pid, signal.SIGINT)
            assert child.wait() == 0
    finally:
        paddock("down", f"--dir={tmp_path}")
