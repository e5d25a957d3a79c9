"""`paddock nic` with a real guest: the interface appears in it and goes."""

import json
from pathlib import Path

import pytest

from tests.host.commands.isolated import IsolatedHost
from tests.host.conftest import wait_until

pytestmark = pytest.mark.needs("qemu", "netns", "tun", "nft")
CONFIG = {
    "cniVersion": "0.3.1",
    "type": "bridge",
    "bridge": "br1",
    "isGateway": True,
    "ipam": {"type": "host-local", "ranges": [[{"subnet": "172.20.0.0/24", "gateway": "172.20.0.1"}]]},
}
NETWORK = {
    "apiVersion": "k8s.cni.cncf.io/v1",
    "kind": "NetworkAttachmentDefinition",
    "metadata": {"name": "lan"},
    "spec": {"config": json.dumps(CONFIG)},
}
MAC = "02:00:00:00:12:34"


def links(host: IsolatedHost) -> list[str]:
    """The MAC addresses of the guest's network interfaces."""
    return sorted(set(host.good("exec", "web", "--", "sh", "-c", "cat /sys/class/net/eth*/address").split()))


def rows(host: IsolatedHost) -> dict[str, dict[str, object]]:
    """The interfaces that `nic ls` shows, by name."""
    return {each["name"]: each for each in json.loads(host.good("nic", "ls", "web", "-o", "json"))}


def run_id(host: IsolatedHost) -> str:
    return str(json.loads(host.good("get", "vmi", "web", "-o", "json"))["metadata"]["uid"])


def test_an_interface_comes_into_a_running_guest_and_goes(isolated: IsolatedHost, work: Path) -> None:
    (work / "lan.json").write_text(json.dumps(NETWORK))
    isolated.good("apply", "-f", str(work / "lan.json"))
    isolated.good("run", "tiny", "-n", "web")
    first, alone = run_id(isolated), links(isolated)
    assert isolated.good("nic", "add", "web", "lan", "--mac", MAC) == "vm/web has the interface lan\n"
    wait_until("the guest has the interface", lambda: MAC in links(isolated))
    wait_until("the guest has an address of the network", lambda: "172.20.0." in str(rows(isolated)["lan"]["addresses"]))
    found = rows(isolated)["lan"]
    assert (found["network"], found["mac"], found["state"]) == ("lan", MAC, "up")
    assert "172.20.0." in isolated.good("exec", "web", "--", "ip", "-4", "-o", "address")
    code, _, err = isolated.call("nic", "add", "web", "lan")
    assert code == 2 and 'already has an interface "lan"' in err
    assert isolated.good("nic", "rm", "web", "lan") == "vm/web no longer has the interface lan\n"
    wait_until("the interface is gone from the guest", lambda: links(isolated) == alone)
    wait_until("`nic ls` has no such interface", lambda: "lan" not in rows(isolated))
    assert run_id(isolated) == first, "nothing was restarted"
    # An interface that comes back keeps the address that its machine had for it.
    isolated.good("nic", "add", "web", "lan")
    wait_until("the guest has the interface again", lambda: MAC in links(isolated))


def test_an_interface_on_a_network_that_is_not_there_is_refused(isolated: IsolatedHost) -> None:
    isolated.good("run", "tiny", "-n", "web")
    code, out, err = isolated.call("nic", "add", "web", "nowhere")
    assert (code, out) == (2, "") and "nowhere" in err
    assert "nowhere" not in isolated.good("get", "vm", "web", "-o", "yaml")
