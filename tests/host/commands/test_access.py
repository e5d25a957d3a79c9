"""The commands that reach into a guest, as processes, on a real guest: exec, cp, logs, screenshot, console, forward, ssh, expose, vnc."""

import asyncio
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.host.commands.terminals import PADDOCK, Terminal
from tests.host.runs.conftest import VERBS, VMS, Data, Host, Talk, machine

pytestmark = pytest.mark.needs("qemu")
_PROMPT = b":/# "


class Commands:
    """The program, on a host."""

    def __init__(self, host: Host) -> None:
        self._environment = {**os.environ, "KUBECONFIG": str(host.root / "kubeconfig"), "XDG_STATE_HOME": str(host.root / "state")}

    def run(self, *words: str, stdin: bytes = b"", seconds: float = 90) -> "subprocess.CompletedProcess[bytes]":
        """A command, to its end."""
        command = [*PADDOCK, *words]
        return subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=seconds, env=self._environment)

    def good(self, *words: str, stdin: bytes = b"") -> str:
        """The output of a command that succeeds."""
        ended = self.run(*words, stdin=stdin)
        assert ended.returncode == 0, (words, ended)
        return ended.stdout.decode()

    def terminal(self, *words: str) -> Terminal:
        """A command in a terminal."""
        return Terminal([*PADDOCK, *words], self._environment)

    def other(self, *words: str) -> "subprocess.CompletedProcess[bytes]":
        """Another program, to its end."""
        return subprocess.run(words, capture_output=True, check=False, timeout=90, env=self._environment)

    @contextmanager
    def going(self, *words: str, lines: int) -> Iterator[list[str]]:
        """A command that goes on until it is interrupted, and its first lines."""
        command = [*PADDOCK, *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=self._environment) as process:
            assert process.stdout is not None
            yield [process.stdout.readline().decode().strip() for _ in range(lines)]
            process.send_signal(2)
            assert process.wait(20) == 0


def with_host(host: Host, script: Any) -> None:
    """Run a script beside a client of the host."""

    async def inside() -> None:
        async with asyncio.timeout(300), host.client() as client:
            await script(Talk(host, client))

    asyncio.run(inside())


def definition(name: str, image: str) -> Data:
    """A machine with a display and a network interface."""
    made = machine(name, image, domain={"memory": {"guest": "256Mi"}}, terminationGracePeriodSeconds=0)
    made["spec"]["template"]["spec"]["domain"]["devices"]["autoattachGraphicsDevice"] = True
    return made


def started(host: Host, image: str) -> Commands:
    """A host with a machine whose agent answers."""
    host.start()

    async def make(talk: Talk) -> None:
        await talk.make(VMS, definition("web", image))
        await talk.running("web")

    with_host(host, make)
    commands = Commands(host)
    deadline = time.monotonic() + 90
    while (ended := commands.run("exec", "web", "--", "true")).returncode:
        assert b"no guest agent answers" in ended.stderr and time.monotonic() < deadline, ended
        time.sleep(0.5)
    return commands


def test_a_guest_is_reached_in_every_way(host: Host, tiny_disk_image: str, tmp_path: Path) -> None:
    commands = started(host, tiny_disk_image)
    _commands_run(commands)
    _files_go_both_ways(commands, tmp_path)
    _its_console_is_kept(commands)
    _its_display_is_seen(commands, tmp_path)
    _its_ports_are_reached(commands)
    _ssh_goes_over_the_server(commands, tmp_path)
    _a_session_and_the_log_outlive_a_restart(host, commands)


def _commands_run(commands: Commands) -> None:
    ended = commands.run("exec", "vm/web", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (ended.returncode, ended.stdout, ended.stderr) == (7, b"out\n", b"err\n")
    assert commands.good("exec", "-i", "web", "--", "wc", "-c", stdin=b"x" * 100_000).strip() == "100000"
    assert commands.good("exec", "-w", "/var", "-e", "A=b c", "web", "--", "sh", "-c", 'echo "$A"; pwd') == "b c\n/var\n"
    assert commands.run("exec", "web", "--", "nosuch").returncode == 127
    assert commands.run("exec", "--timeout", "1s", "web", "--", "sleep", "60").returncode == 124
    # It takes longer than the server waits for one answer.
    began = time.monotonic()
    assert commands.good("exec", "web", "--", "sh", "-c", "sleep 22; echo late") == "late\n"
    assert time.monotonic() - began > 20


def _files_go_both_ways(commands: Commands, tmp_path: Path) -> None:
    data = os.urandom(3_000_001)
    (tmp_path / "file").write_bytes(data)
    (tmp_path / "file").chmod(0o741)
    commands.good("cp", "-q", str(tmp_path / "file"), "web:/tmp/")
    assert commands.good("exec", "web", "--", "stat", "-c", "%a %s", "/tmp/file") == "741 3000001\n"
    commands.good("cp", "-q", "web:/tmp/file", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == data and (tmp_path / "back").stat().st_mode & 0o777 == 0o741
    (tmp_path / "tree" / "sub").mkdir(parents=True)
    (tmp_path / "tree" / "sub" / "a b").write_bytes(b"leaf")
    (tmp_path / "tree" / "link").symlink_to("sub/a b")
    commands.good("cp", "-r", str(tmp_path / "tree"), "web:/tmp")
    commands.good("cp", "-r", "web:/tmp/tree", str(tmp_path / "again"))
    assert (tmp_path / "again" / "link").read_bytes() == b"leaf"
    assert commands.good("exec", "web", "--", "sh", "-c", "ls -A /tmp /var/tmp | grep paddock || echo nothing") == "nothing\n"
    ended = commands.run("cp", "web:/none", str(tmp_path))
    assert ended.returncode == 2 and b"no such file" in ended.stderr


def _its_console_is_kept(commands: Commands) -> None:
    assert "READY web" in commands.good("logs", "web")
    assert len(commands.good("logs", "--tail", "2", "web").splitlines()) == 2
    assert b"no previous console log" in commands.run("logs", "--previous", "web").stderr
    assert b"its guest has none in /var/log" in commands.run("logs", "--cloud-init", "web").stderr


def _its_display_is_seen(commands: Commands, tmp_path: Path) -> None:
    commands.good("screenshot", "web", "-o", str(tmp_path / "web.png"))
    assert (tmp_path / "web.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    with commands.going("vnc", "--proxy", "web", lines=1) as (address,):
        host, _, port = address.partition(":")
        with socket.create_connection((host, int(port)), 20) as viewer:
            viewer.settimeout(20)
            assert viewer.recv(12) == b"RFB 003.008\n"


def _its_ports_are_reached(commands: Commands) -> None:
    with commands.going("forward", "web", ":80", ":7", ":7/udp", lines=3) as lines:
        ports = [int(found[1]) for line in lines if (found := re.search(r":(\d+) ->", line))]
        with urllib.request.urlopen(f"http://127.0.0.1:{ports[0]}/", timeout=20) as answer:
            assert answer.read().strip() == b"web"
        with socket.create_connection(("127.0.0.1", ports[1]), 20) as tcp:
            tcp.settimeout(20)
            tcp.sendall(b"echo")
            assert tcp.recv(100) == b"echo"
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            udp.settimeout(20)
            udp.sendto(b"datagram", ("127.0.0.1", ports[2]))
            assert udp.recv(100) == b"datagram"
    address = commands.good("expose", "web", "--port", "8080:80", "--type", "NodePort", "--name", "web-node").strip()
    with urllib.request.urlopen(f"http://{address}/", timeout=20) as answer:
        assert answer.read().strip() == b"web"


def _ssh_goes_over_the_server(commands: Commands, tmp_path: Path) -> None:
    if shutil.which("ssh") is None or shutil.which("ssh-keygen") is None:
        pytest.skip("needs ssh: there is no client")
    key = str(tmp_path / "key")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    commands.good("exec", "web", "--", "mkdir", "-p", "-m", "700", "/root/.ssh")
    commands.good("cp", f"{key}.pub", "web:/root/.ssh/authorized_keys")
    assert commands.good("ssh", "-i", key, "web", "--", "echo", "$USER", "at", "$(hostname)") == "root at web\n"
    assert commands.run("ssh", "-i", key, "root@web", "--", "exit", "9").returncode == 9
    terminal = commands.terminal("ssh", "-i", key, "web")
    terminal.type(b"echo shell$((1+1)); tty; exit 3\r")
    terminal.until(b"shell2")
    terminal.until(b"/dev/pts/")
    assert terminal.ended() == 3
    ended = commands.run("ssh", "-p", "2222", "web")
    assert ended.returncode == 2 and b"no SSH server answers on port 2222" in ended.stderr
    (tmp_path / "config").write_text(commands.good("ssh", "--config", "-i", key))
    assert commands.other("ssh", "-F", str(tmp_path / "config"), "web.paddock", "true").returncode == 0
    assert commands.other("scp", "-F", str(tmp_path / "config"), "web.default.paddock:/etc/passwd", str(tmp_path)).returncode == 0
    assert (tmp_path / "passwd").read_text().startswith("root:")


def _a_session_and_the_log_outlive_a_restart(host: Host, commands: Commands) -> None:
    terminal = commands.terminal("console", "web", "--replay")
    terminal.until(b"READY web")
    terminal.type(b"\r")
    terminal.until(_PROMPT)
    terminal.type(b"echo first$((1+1))\r")
    terminal.until(b"first2")
    with_host(host, lambda talk: talk.client.request("PUT", f"{VERBS}/web/restart"))
    terminal.until(b"READY web", 120)
    terminal.type(b"\r")
    terminal.until(_PROMPT)
    terminal.type(b"echo second$((1+1))\r")
    terminal.until(b"second2")
    terminal.type(b"\x1d")
    assert terminal.ended() == 0
    assert "first2" in commands.good("logs", "--previous", "web") and "second2" in commands.good("logs", "web")
    # A new run of an image has new host keys: they belong to the run, and nobody is warned of a stranger.
    with_host(host, lambda talk: talk.client.request("PUT", f"{VERBS}/web/stop"))
    deadline = time.monotonic() + 60
    while b"it is not running; start it" not in (ended := commands.run("exec", "web", "--", "true")).stderr:
        assert time.monotonic() < deadline, ended
    assert "second2" in commands.good("logs", "web")
    host.kill()
    host.start()
    assert "second2" in commands.good("logs", "web")
    with_host(host, lambda talk: talk.client.request("DELETE", f"{VMS}/web"))
    consoles = host.root / "engine" / "consoles"
    deadline = time.monotonic() + 60
    while list(consoles.iterdir()):
        assert time.monotonic() < deadline, "the log of a machine that is gone stays"
        time.sleep(0.2)
