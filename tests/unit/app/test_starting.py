"""Starts that fail: one line that says what to do, no traceback, and no directory that was not there before."""

import base64
import os
import re
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from paddock.app.directory import process
from paddock.app.directory.paths import DataPaths

SECRET_FREE = {**os.environ, "PADDOCK_TRACEBACK": ""}


def paddock(*words: str, **more: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "paddock.app", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**SECRET_FREE, **more}, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("detached", [(), ("--detach",)])
@pytest.mark.parametrize("command", ["up", "apiserver"])
def test_a_port_that_is_taken(tmp_path: Path, command: str, detached: tuple[str, ...]) -> None:
    root = tmp_path / "new"
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        said = paddock(command, f"--dir={root}", f"--listen=127.0.0.1:{port}", *detached)
    assert said.returncode == 2 and "Traceback" not in said.stderr
    assert f"cannot listen on 127.0.0.1:{port}: another program uses that port" in said.stderr and "--listen 127.0.0.1:0" in said.stderr
    assert not root.exists()


def test_a_directory_that_was_there_stays(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("keep me")
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert paddock("up", f"--dir={tmp_path}", f"--listen=127.0.0.1:{other.getsockname()[1]}").returncode == 2
    assert (tmp_path / "mine").read_text() == "keep me"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
@pytest.mark.parametrize("detached", [(), ("--detach",)])
def test_a_full_disk(tmp_path: Path, detached: tuple[str, ...]) -> None:
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "full", str(tmp_path)], check=False)
    if mounted.returncode:
        pytest.skip("nothing may be mounted here")
    try:
        said = paddock("up", f"--dir={tmp_path / 'new'}", "--listen=127.0.0.1:0", *detached)
        assert said.returncode == 2 and "Traceback" not in said.stderr, said.stderr
        assert re.search("No space left on device|is full|cannot be opened", said.stderr), said.stderr
        assert re.search("make room|free space", said.stderr)
        assert len(said.stderr.strip().splitlines()) == 1 and not (tmp_path / "new").exists()
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.parametrize("port", ["--listen=127.0.0.1:0", "--port=0", "--secure-port=0"])
def test_a_port_is_chosen(tmp_path: Path, port: str) -> None:
    said = paddock("apiserver", f"--dir={tmp_path / 'new'}", port, "--detach")
    try:
        assert said.returncode == 0 and re.search(r"ready at https://127\.0\.0\.1:[1-9]\d*;", said.stdout), said.stderr
    finally:
        assert paddock("down", f"--dir={tmp_path / 'new'}").returncode == 0


def test_a_server_in_the_background_holds_no_file_of_its_caller(tmp_path: Path) -> None:
    root = tmp_path / "new"
    reading, writing = os.pipe()
    command = [sys.executable, "-m", "paddock.app", "apiserver", f"--dir={root}", "--listen=127.0.0.1:0", "--detach"]
    subprocess.run(command, check=True, capture_output=True, pass_fds=(writing,))
    try:
        os.close(writing)
        assert select.select([reading], [], [], 0)[0] and os.read(reading, 1) == b""
        server = process.find(DataPaths(root))
        assert server is not None and os.getsid(server.pid) == server.pid
    finally:
        os.close(reading)
        assert paddock("down", f"--dir={root}").returncode == 0


def test_a_server_in_the_background_needs_no_standard_input(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "paddock.app", "apiserver", f"--dir={tmp_path / 'new'}", "--listen=127.0.0.1:0", "--detach"]
    said = subprocess.run(["sh", "-c", '"$@" <&-', "sh", *command], check=False, capture_output=True, text=True)
    assert said.returncode == 0 and "ready at" in said.stdout, said.stderr
    assert paddock("down", f"--dir={tmp_path / 'new'}").returncode == 0
    assert "paddock: stopping" in (tmp_path / "new" / "server.log").read_text()


def test_a_place_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = paddock("up", f"--dir={tmp_path / 'file' / 'new'}", "--listen=127.0.0.1:0")
    assert (
        said.returncode == 2
        and said.stderr == f"paddock: cannot use {tmp_path / 'file' / 'new'}: Not a directory; correct that, and try again\n"
    )


def test_a_defect_is_one_line_unless_somebody_wants_more(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import paddock.cli.main as m\ndef broken(*_): raise TypeError('a\\nb')\nm._dispatch = broken\n"
    )
    said = paddock("status", PYTHONPATH=str(tmp_path))
    assert said.returncode == 2 and "defect of Paddock: TypeError: a b" in said.stderr and len(said.stderr.splitlines()) == 1
    assert "Traceback" in paddock("status", PYTHONPATH=str(tmp_path), PADDOCK_TRACEBACK="1").stderr


def test_a_list_of_images_makes_nothing(tmp_path: Path) -> None:
    said = paddock("image", "ls", f"--dir={tmp_path / 'new'}", "-o", "json")
    assert (said.returncode, said.stdout) == (0, "[]\n") and not (tmp_path / "new").exists()


def test_data_are_deleted_only_with_both_words_and_a_yes(tmp_path: Path) -> None:
    root = tmp_path / "host"
    assert paddock("apiserver", f"--dir={root}", "--listen=127.0.0.1:0", "--detach").returncode == 0
    assert "--delete-data goes with --purge" in paddock("down", f"--dir={root}", "--delete-data").stderr
    asked = paddock("down", f"--dir={root}", "--purge", "--delete-data")
    assert asked.returncode == 2 and f"DELETES {root}" in asked.stderr and "--yes" in asked.stderr
    assert paddock("status", f"--dir={root}").returncode == 0, "it still runs"
    kept = paddock("down", f"--dir={root}", "--purge", "--yes")
    assert kept.returncode == 0 and "stay" in kept.stderr and (root / "store.db").exists()
    gone = paddock("down", f"--dir={root}", "--purge", "--delete-data", "--yes")
    assert gone.returncode == 0 and not root.exists(), gone.stderr


def test_an_end_by_a_key_is_no_defect(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "paddock.app", "apiserver", f"--dir={tmp_path / 'new'}", "--listen=127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any("ready at" in line for line in process.stderr)
        process.send_signal(signal.SIGINT)
        assert "Traceback" not in process.stderr.read() and process.wait(30) == 0


def test_a_start_with_good_certificates_makes_and_loads_nothing_for_them(tmp_path: Path) -> None:
    places, kept = DataPaths(tmp_path / "new"), list[bytes]()
    for _ in range(2):
        assert paddock("apiserver", f"--dir={places.root}", "--listen=127.0.0.1:0", "--detach").returncode == 0
        server = process.find(places)
        assert server is not None
        maps = Path(f"/proc/{server.pid}/maps").read_text()
        assert paddock("down", f"--dir={places.root}").returncode == 0
        certificate = (places.pki / "admin.crt").read_bytes()
        assert base64.b64encode(certificate).decode() in places.kubeconfig.read_text()
        kept.append(certificate + (places.pki / "server.crt").read_bytes())
        assert ("/cryptography/" in maps) is (len(kept) == 1)
    assert kept[0] == kept[1]
