"""Snapshots, restores and clones of a VirtRigaud machine by name, with a real guest: the Provider is this server."""

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


def spec(host: IsolatedHost, name: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(host.good("get", "virtualmachines.infra.virtrigaud.io", name, "-o", "json"))["spec"]
    return found


def test_a_snapshot_brings_data_back_and_a_clone_has_it(isolated: IsolatedHost) -> None:
    isolated.good("run", "tiny", "-n", "web", "--dialect", "virtrigaud")
    wait_for_agent(isolated, "web")
    before = spec(isolated, "web")
    write(isolated, "first")
    assert isolated.good("snap", "web", "one") == "one\n"
    write(isolated, "other")
    rows = json.loads(isolated.good("snap", "ls", "web", "-o", "json"))
    assert [(each["name"], each["machine"], each["state"]) for each in rows] == [("one", "web", "ready")]
    code, _, err = isolated.call("restore", "web", "one")
    assert code == 1 and "what was written since is lost" in err and "starts again" in err and read(isolated, "web") == "other"
    code, out, err = isolated.call("restore", "web", "one", "--yes", "--no-start")
    assert (code, out) == (2, "") and "cannot leave virtrigaud/web stopped" in err and read(isolated, "web") == "other"
    assert isolated.good("restore", "web", "one", "--yes") == "virtrigaud/web restored to one\n"
    wait_for_agent(isolated, "web")
    assert read(isolated, "web") == "first"
    write(isolated, "third")
    # A second restore to the same snapshot is another one.
    assert isolated.good("restore", "virtrigaud/web", "one", "--yes") == "virtrigaud/web restored to one\n"
    wait_for_agent(isolated, "web")
    assert read(isolated, "web") == "first"
    assert {key: value for key, value in spec(isolated, "web").items() if key != "snapshot"} == before
    assert isolated.good("clone", "web", "twin", "--start") == "virtrigaud/twin cloned from virtrigaud/web\n"
    wait_for_agent(isolated, "twin")
    assert read(isolated, "twin") == "first"
    rows = {each["name"]: each for each in json.loads(isolated.good("ls", "-o", "json"))}
    assert {each["dialect"] for each in rows.values()} == {"virtrigaud"} and set(rows) == {"web", "twin"}
    assert rows["web"]["ips"] != rows["twin"]["ips"]
    code, _, err = isolated.call("clone", "web", "twin")
    assert code == 2 and "there is virtrigaud/twin already" in err
    assert isolated.good("snap", "rm", "web", "one", "--yes") == "one deleted\n"
    assert isolated.good("snap", "ls", "web", "-o", "name") == ""


def test_a_clone_without_start_is_off(isolated: IsolatedHost) -> None:
    isolated.good("run", "tiny", "-n", "web", "--dialect", "virtrigaud")
    code, out, err = isolated.call("clone", "web", "twin")
    assert (code, out) == (0, "virtrigaud/twin cloned from virtrigaud/web\n") and "it is off" in err
    (row,) = [each for each in json.loads(isolated.good("ls", "-o", "json")) if each["name"] == "twin"]
    assert row["status"] in ("Off", "Stopped")
    isolated.good("start", "twin")
    wait_for_agent(isolated, "twin")
