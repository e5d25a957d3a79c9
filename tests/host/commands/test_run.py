"""`paddock run` with real guests: every dialect, from nothing to an answer, and back to nothing."""

import signal
import sys
from pathlib import Path

import pytest

from tests.host.commands.isolated import ADDRESS, SECONDS, IsolatedHost
from tests.host.commands.terminals import Terminal
from tests.host.conftest import wait_until
from tests.host.networks.namespaces import run as system

pytestmark = [pytest.mark.needs("qemu", "netns", "tun", "nft"), pytest.mark.long]


def test_a_usable_machine_with_a_port_and_a_key(isolated: IsolatedHost) -> None:
    out = isolated.good("run", "tiny", "-p", "8080:80", "--timings")
    lines = out.splitlines()
    assert lines[0].startswith("tiny-1 is usable, at ") and lines[0].endswith("(1 CPU, 192Mi)")
    assert "  paddock ssh tiny-1" in out and "paddock console tiny-1" in out
    assert f"  {ADDRESS}:8080  " in out and "port 80 of the guest, TCP" in out
    own = float(lines[-1].split()[-2])
    assert lines[-1].startswith("Paddock's own share") and own < 10
    address = lines[0].split(" at ")[1].split()[0]
    key = str(isolated.home / ".ssh" / "id_ed25519")
    options = ("-i", key, "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes")
    said = system("ip", "netns", "exec", isolated.namespace, "ssh", *options, f"root@{address}", "hostname")
    assert said.strip() == "tiny-1"
    page = f"import urllib.request as u; print(u.urlopen('http://{ADDRESS}:8080/', timeout=20).status)"
    assert system("ip", "netns", "exec", isolated.namespace, sys.executable, "-c", page).strip() == "200"
    # The next one has a name of its own; a name that is taken is refused.
    assert isolated.good("run", "tiny", "--no-wait", "-q") == "tiny-2\n"
    code, _, err = isolated.call("run", "tiny", "-n", "tiny-1")
    assert code == 2 and "there is a VirtualMachine tiny-1 already" in err


@pytest.mark.parametrize("dialect", ["kubermatic", "stakater", "virtrigaud", "vitistack"])
def test_every_dialect_comes_and_goes(dialect: str, isolated: IsolatedHost) -> None:
    with isolated.start("run", "tiny", "-n", "web", "--dialect", dialect, "--rm", "-q") as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            assert process.stdout.readline() == "web\n", process.stderr.read()
            assert len(isolated.machines) == 1
            process.send_signal(signal.SIGINT)
            assert process.wait(SECONDS) == 130
        finally:
            # Or a command that does not end is waited for without end.
            process.kill()
    wait_until("the machine is gone", lambda: isolated.machines == [], 60)
    # An image that belongs to all runs may stay.
    assert [isolated.good("get", kind, "-o", "name").count("web") for kind in ("dv", "pvc")] == [0, 0]


def test_a_run_in_the_background_ends_at_sigterm(isolated: IsolatedHost) -> None:
    # A shell without job control starts it so.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    process = isolated.start("run", "tiny", "-n", "web", "--rm", "-q")
    signal.signal(signal.SIGINT, before)
    with process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "web\n"
            process.terminate()
            assert process.wait(SECONDS) == 130
        finally:
            process.kill()
    wait_until("the machine is gone", lambda: isolated.machines == [], 60)
    assert isolated.good("get", "vm", "-o", "name") == ""


def test_an_image_that_cannot_be_had_is_explained(isolated: IsolatedHost) -> None:
    code, out, err = isolated.call("run", "http://127.0.0.1:9/none.qcow2", "-n", "web")
    assert (code, out) == (1, "")
    assert "web cannot run" in err and "cause:" in err and "fix:" in err


def test_a_server_elsewhere_gets_no_file_of_this_host(isolated: IsolatedHost, work: Path) -> None:
    config = work / "elsewhere"
    config.write_text((isolated.place / "kubeconfig").read_text().replace("127.0.0.1", "localhost"))
    code, _, err = isolated.call("run", "tiny", "--kubeconfig", str(config))
    assert code == 2 and "cannot give tiny to the server" in err


def without_a_trace(host: IsolatedHost) -> None:
    """A machine that was there for a moment is gone, with its disks."""
    assert [host.good(*words) for words in (("ls", "-o", "name"), ("get", "dv", "-o", "name"), ("get", "pvc", "-o", "name"))] == [""] * 3
    wait_until("QEMU and the disks are gone", lambda: host.machines == [] and host.volumes == [])


def prompt(terminal: Terminal) -> None:
    """Wait for the console that `run --rm` opens, and for the guest's shell."""
    terminal.until(b"ctrl+] leaves", SECONDS)
    terminal.type(b"\r")
    terminal.until(b":/# ")


def test_a_machine_for_a_moment_is_gone_after_its_console(isolated: IsolatedHost) -> None:
    terminal = isolated.terminal("run", "tiny", "-n", "web", "--rm")
    terminal.until(b"web is usable", SECONDS)
    prompt(terminal)
    assert len(isolated.machines) == 1 and isolated.volumes
    # Ctrl+C belongs to the guest while its console is open.
    terminal.type(b"sh -c 'echo begun$((1+1)); exec sleep 1000'\r")
    # A shell that is about to start its command ignores Ctrl+C, and what follows it at once is dropped with the line.
    terminal.until(b"begun2")
    terminal.type(b"\x03")
    terminal.until(b":/# ")
    terminal.type(b"echo still$((1+1))\r")
    terminal.until(b"still2")
    terminal.type(b"\x1d")
    assert terminal.ended() == 0
    assert "still2" in "".join(terminal.lines), "what the console showed stays on the screen"
    without_a_trace(isolated)


def test_a_machine_for_a_moment_is_gone_after_its_guest_powers_off(isolated: IsolatedHost) -> None:
    terminal = isolated.terminal("run", "tiny", "-n", "web", "--rm")
    prompt(terminal)
    terminal.type(b"poweroff\r")
    assert terminal.ended() == 0
    without_a_trace(isolated)


@pytest.mark.parametrize("way", ["ctrl+C", "SIGTERM", "a closed terminal"])
def test_a_machine_for_a_moment_is_gone_when_the_wait_is_interrupted(way: str, isolated: IsolatedHost) -> None:
    terminal = isolated.terminal("run", "tiny", "-n", "web", "--rm")
    wait_until("the machine is there", lambda: isolated.good("ls", "-o", "name") != "")
    if way == "a closed terminal":
        terminal.close()
    else:
        terminal.type(b"\x03") if way == "ctrl+C" else terminal.send(signal.SIGTERM)
        assert terminal.ended() == 130
        assert b"Traceback" not in terminal.everything
    without_a_trace(isolated)


def test_a_machine_for_a_moment_is_gone_when_the_terminal_of_its_console_is_closed(isolated: IsolatedHost) -> None:
    terminal = isolated.terminal("run", "tiny", "-n", "web", "--rm")
    prompt(terminal)
    terminal.close()
    without_a_trace(isolated)
