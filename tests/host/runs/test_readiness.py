"""A host that cannot run machines is not ready, says why, and becomes ready by itself; a QEMU that hangs is seen, and its going on too."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.base.errors import PaddockError
from tests.coroutines import played, played_by
from tests.host.guests import Registry
from tests.host.networks.namespaces import run as command
from tests.host.runs.conftest import EVENTS, PROMPT, VMIS, VMS, Data, Host, Play, Talk, condition, machine, perform

pytestmark = pytest.mark.needs("qemu")
NODES = "/api/v1/nodes"
PAUSE = VMIS.replace("/apis/", "/apis/subresources.") + "/{}/pause"


async def _is_ready(talk: Talk) -> bool:
    try:
        await talk.client.request("GET", "/readyz")
    except PaddockError:
        return False
    return True


async def _node(talk: Talk, status: str, reason: str) -> Data:
    """The condition of the Node, as soon as it is this."""

    def holds(found: Data) -> bool:
        ready = condition(found["items"][0], "Ready") if found.get("items") else {}
        return (ready.get("status"), ready.get("reason")) == (status, reason)

    found = await talk.until(NODES, holds, f"the host is {reason}", 60)
    return condition(found["items"][0], "Ready")


async def _unready_then_ready(talk: Talk, reason: str, text: str, repair: "list[str] | Path") -> None:
    said = await _node(talk, "False", reason)
    assert text in said["message"]
    assert not await _is_ready(talk)
    # The server itself is well.
    await talk.client.request("GET", "/livez")
    await talk.make(VMS, machine("web"))
    found = await talk.until(f"{VMIS}/web", lambda found: condition(found, "Ready").get("reason") == "HostNotReady", "it says why")
    assert text in condition(found, "Ready")["message"]
    await talk.until(f"{VMS}/web", lambda found: text in condition(found, "Ready").get("message", ""), "its machine says why, too")
    events = await talk.until(EVENTS, lambda found: any(each["reason"] == reason for each in found["items"]), "an event tells it")
    assert {each["involvedObject"]["kind"] for each in events["items"] if each["reason"] == reason} == {"Node"}
    if isinstance(repair, Path):
        repair.symlink_to(str(shutil.which("qemu-system-x86_64")))
    else:
        command(*repair)
    await _node(talk, "True", "ServerReady")
    assert await _is_ready(talk)
    await talk.until(f"{VMIS}/web", lambda found: condition(found, "Ready").get("status") == "True", "it runs")


@pytest.mark.spec("kubevirt", 112)
def test_a_host_without_qemu_is_ready_when_qemu_is_there(play: Play, host: Host, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host.waits = False
    programs = work / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))

    async def script(talk: Talk) -> None:
        monkeypatch.undo()
        await _unready_then_ready(talk, "QemuMissing", "there is no qemu-system-x86_64", programs / "qemu-system-x86_64")

    play(script)


class RoutedHost(Host):
    """A host with a pod network that a test may have in use."""

    network = "routed"
    waits = False
    options = ("--pod-network=10.213.0.0/18",)


@pytest.fixture
def occupied(work: Path, registry: Registry) -> Iterator[RoutedHost]:
    """A host whose pod network is in use by something else."""
    command("ip", "link", "add", "pdkbusy", "type", "bridge")
    command("ip", "address", "add", "10.213.1.1/24", "dev", "pdkbusy")
    command("ip", "link", "set", "pdkbusy", "up")
    host = RoutedHost(work, registry.address)
    yield host
    host.end()
    command("ip", "link", "delete", "pdkbusy", check=False)


@pytest.mark.needs("root")
@played_by(perform, "occupied")
async def test_a_machine_whose_network_is_in_use_says_so_and_runs_when_it_is_free(talk: Talk, /) -> None:
    def says(found: Data) -> bool:
        return any("10.213.0.0/18" in each.get("message", "") for each in found.get("status", {}).get("conditions") or ())

    # The network is chosen with the first card, so only the machines that want one wait.
    await talk.make(VMS, machine("web"))
    await talk.until(f"{VMIS}/web", says, "it names the network")
    command("ip", "link", "delete", "pdkbusy")
    await talk.running("web")
    # Its bridge goes with it.
    await talk.client.request("DELETE", f"{VMS}/web")
    await talk.until(f"{VMIS}/web", lambda found: not found, "it is gone")


@pytest.mark.spec("kubevirt", 113)
@played
async def test_a_qemu_that_is_stopped_is_seen_and_told_nothing_that_it_does_later(talk: Talk, /) -> None:
    await talk.make(VMS, machine("web"))
    uid = (await talk.running("web"))["metadata"]["uid"]
    await talk.until(f"{VMIS}/web", lambda found: condition(found, "Ready").get("status") == "True", "it is ready")
    (pid,) = talk.host.qemus()[uid]
    os.kill(pid, signal.SIGSTOP)
    found = await talk.until(f"{VMIS}/web", lambda found: condition(found, "Ready").get("reason") == "ProcessStopped", "it is seen", 40)
    assert condition(found, "Ready")["status"] == "False" and "SIGSTOP" in condition(found, "Ready")["message"]
    with pytest.raises(PaddockError, match="it was not told"):
        await talk.client.request("PUT", PAUSE.format("web"), body=b"{}")
    os.kill(pid, signal.SIGCONT)
    found = await talk.until(f"{VMIS}/web", lambda found: condition(found, "Ready").get("status") == "True", "it goes on", 40)
    assert not condition(found, "Paused")
    told = {"ProcessStopped", "GuestResponding"}
    await talk.until(EVENTS, lambda found: told <= {each["reason"] for each in found["items"]}, "it is told")
    # It does what it is told from now on.
    await talk.client.request("PUT", PAUSE.format("web"), body=b"{}")
    await talk.until(f"{VMIS}/web", lambda found: condition(found, "Paused").get("status") == "True", "it pauses")


@pytest.mark.spec("kubevirt", 113)
@played
async def test_a_stopped_qemu_does_not_keep_others_from_being_looked_after(talk: Talk, /) -> None:
    for name in ("stuck", "well"):
        await talk.make(VMS, machine(name))
    uids = {name: (await talk.running(name))["metadata"]["uid"] for name in ("stuck", "well")}
    (pid,) = talk.host.qemus()[uids["stuck"]]
    os.kill(pid, signal.SIGSTOP)
    talk.host.kill()
    talk.host.start()
    async with talk.host.client() as client:
        again = Talk(talk.host, client)
        await _node(again, "True", "ServerReady")
        reason = "ProcessStopped"
        await again.until(f"{VMIS}/stuck", lambda found: condition(found, "Ready").get("reason") == reason, "it is seen", 40)
        await again.until(f"{VMIS}/well", lambda found: condition(found, "Ready").get("status") == "True", "it is ready")
        os.kill(pid, signal.SIGCONT)
        await again.until(f"{VMIS}/stuck", lambda found: condition(found, "Ready").get("status") == "True", "it goes on", 40)


@pytest.mark.slow
@pytest.mark.spec("kubevirt", 114)
@played
async def test_a_guest_whose_agent_is_silent_is_seen_and_its_answer_too(talk: Talk, /, tiny_disk_image: str) -> None:
    await talk.make(VMS, machine("web", tiny_disk_image, domain={"memory": {"guest": "192Mi"}}, terminationGracePeriodSeconds=0))
    await talk.until(f"{VMIS}/web", lambda found: condition(found, "AgentConnected").get("status") == "True", "its agent is there", 120)
    async with talk.console("web") as console:
        await console.write(b"\r")
        await console.until(PROMPT, 120)
        await console.shell("kill -STOP $(pidof qemu-ga)")
        reason = "GuestNotResponding"
        found = await talk.until(f"{VMIS}/web", lambda found: condition(found, "Ready").get("reason") == reason, "it is seen", 150)
        agent = condition(found, "AgentConnected")
        assert (agent["status"], agent["reason"]) == ("False", "AgentNotResponding")
        await console.shell("kill -CONT $(pidof qemu-ga)")
    found = await talk.until(f"{VMIS}/web", lambda found: condition(found, "Ready").get("status") == "True", "it answers", 60)
    assert condition(found, "AgentConnected")["status"] == "True"
