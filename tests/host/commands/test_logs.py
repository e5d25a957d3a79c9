"""`paddock logs` with a real guest: the serial console's log, what comes, and cloud-init's own logs."""

from pathlib import Path

import pytest

from tests.host.commands.isolated import IsolatedHost
from tests.host.commands.terminals import PipedCommand
from tests.host.conftest import wait_until

pytestmark = pytest.mark.needs("qemu", "netns", "tun", "nft")


def say(host: IsolatedHost, word: str) -> None:
    """Have the guest write a word to its console; the word itself is not in the command."""
    first, last = word[:1], word[1:]
    host.good("exec", "web", "--", "sh", "-c", f"echo {first}''{last} > /dev/ttyS0")


def test_a_log_is_printed_followed_and_cut(isolated: IsolatedHost, work: Path) -> None:
    isolated.good("run", "tiny", "-n", "web")
    boot = isolated.good("logs", "--boot", "web")
    assert "READY web" in boot and boot == isolated.good("logs", "web")
    following = PipedCommand(isolated.start("logs", "-f", "--tail", "1", "web"))
    say(isolated, "apple")
    following.until(b"apple")
    assert b"READY web" not in following.everything, "--tail leaves out what was before"
    assert len(isolated.good("logs", "--tail", "1", "web").splitlines()) == 1
    isolated.good("restart", "web")
    wait_until("the guest answers again", lambda: isolated.call("exec", "web", "--", "true")[0] == 0, 120)
    say(isolated, "pear")
    following.until(b"pear")
    assert following.everything.count(b"READY web") == 1, "the new run's log is printed once, from its beginning"
    assert following.interrupt() == (0, "paddock: web was started anew\n")
    assert "apple" in isolated.good("logs", "--previous", "web") and "pear" not in isolated.good("logs", "--previous", "web")
    for words in (("--cloud-init", "-f"), ("-f", "--previous"), ("--cloud-init", "--boot")):
        assert isolated.call("logs", *words, "web")[0] == 2


def test_a_terminal_gets_a_log_without_what_acts_on_it(isolated: IsolatedHost) -> None:
    isolated.good("run", "tiny", "-n", "web")
    isolated.good("exec", "web", "--", "sh", "-c", r"printf 'bef\033[2Jore\033[31mred\n' > /dev/ttyS0")
    wait_until("the log has it", lambda: "ore" in isolated.good("logs", "--tail", "3", "web"))
    terminal = isolated.terminal("logs", "-f", "web")
    terminal.until_shown(lambda lines: any("beforered" in each for each in lines))
    assert b"\x1b[2J" not in terminal.everything
    terminal.type(b"\x03")
    assert terminal.ended() == 0
    assert "\x1b[2J" in isolated.good("logs", "web"), "a pipe gets every byte"


def test_cloud_inits_logs_come_by_the_agent(isolated: IsolatedHost) -> None:
    isolated.good("run", "tiny", "-n", "web")
    code, out, err = isolated.call("logs", "--cloud-init", "web")
    assert (code, out) == (2, "") and "its guest has none in /var/log" in err
    # The tiny guest reads its seed without cloud-init, so the test writes the logs.
    script = "mkdir -p /var/log; seq 1 90000 > /var/log/cloud-init.log; echo out > /var/log/cloud-init-output.log"
    isolated.good("exec", "web", "--", "sh", "-c", script)
    code, out, err = isolated.call("logs", "--cloud-init", "web")
    assert code == 0 and out == "".join(f"{number}\n" for number in range(1, 90001)) + "out\n"
    assert err.splitlines() == ["paddock: /var/log/cloud-init.log", "paddock: /var/log/cloud-init-output.log"]
    assert isolated.good("logs", "--cloud-init", "--tail", "2", "web") == "89999\n90000\nout\n"
