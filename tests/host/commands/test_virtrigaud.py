"""Snapshots and clones of a VirtRigaud machine by name, with a real guest: the Provider is this server."""

import json

import pytest

from tests.host.commands.isolated import IsolatedHost
from tests.host.conftest import wait_until

pytestmark = pytest.mark.needs("qemu", "netns", "tun", "nft")
DATA = "/data/word"


def wait_for_agent(host: IsolatedHost, name: str) -> None:
    wait_until("the agent answers", lambda: host.call("exec", name, "--", "true")[0] == 0, 120)


def write(host: IsolatedHost, text: str) -> None:
    host.good("exec", "web", "--", "sh", "-c", f"echo {text} > {DATA}; sync")


def read(host: IsolatedHost, name: str) -> str:
    return host.good("exec", name, "--", "cat", DATA).strip()


def test_a_snapshot_is_taken_and_a_restore_asks(isolated: IsolatedHost) -> None:
    isolated.good("run", "tiny", "-n", "web", "--dialect", "virtrigaud")
    wait_for_agent(isolated, "web")
    write(isolated, "first")
    assert isolated.good("snap", "web", "one") == "one\n"
    write(isolated, "other")
    rows = json.loads(isolated.good("snap", "ls", "web", "-o", "json"))
    assert [(each["name"], each["machine"], each["state"]) for each in rows] == [("one", "web", "ready")]
    code, _, err = isolated.call("restore", "web", "one")
    assert code == 1 and "what was written since is lost" in err and "starts again" in err and read(isolated, "web") == "other"
    code, out, err = isolated.call("restore", "web", "one", "--yes", "--no-start")
    assert (code, out) == (2, "") and "cannot leave virtrigaud/web stopped" in err and read(isolated, "web") == "other"


def test_a_clone_without_start_is_off(isolated: IsolatedHost) -> None:
    isolated.good("run", "tiny", "-n", "web", "--dialect", "virtrigaud")
    code, out, err = isolated.call("clone", "web", "twin")
    assert (code, out) == (0, "virtrigaud/twin cloned from virtrigaud/web\n") and "it is off" in err
    (row,) = [each for each in json.loads(isolated.good("ls", "-o", "json")) if each["name"] == "twin"]
    assert row["status"] in ("Off", "Stopped")
    isolated.good("start", "twin")
    wait_for_agent(isolated, "twin")
