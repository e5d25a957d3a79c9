"""In which order things come and go, as watches tell it, with real guests."""

import asyncio
import os
from itertools import groupby, pairwise
from typing import Any

import orjson
import pytest

from tests.coroutines import played
from tests.host.fronts import test_stakater_changes as stakater
from tests.host.fronts import test_vitistack_changes as vitistack
from tests.host.fronts.conftest import MB, guest
from tests.host.fronts.test_sources import CLAIMS, DISKS, SOURCES, installed
from tests.host.runs.conftest import SECRETS, VMIS, VMS, Data, Talk
from tests.kit.servers.imageserver import Server
from tests.scenario.fronts.kubermatic.making import source
from tests.unit.dialects.vitistack.plan.test_phases import STEPS

pytestmark = pytest.mark.needs("qemu")

SERVICES = "/api/v1/namespaces/default/services"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID3TomWVaH/e6dd61FMRtOGRxsYGn5cNQqxXhlHgqST2 emma@acme"


class Watch:
    """All events of a kind from now on, asked for a second at a time."""

    def __init__(self, talk: Talk, path: str) -> None:
        self._talk = talk
        self._path = path
        self._is_over = False
        self._task = asyncio.create_task(self._follow())

    async def _follow(self) -> list[Data]:
        events: list[Data] = []
        version = (await self._talk.get(self._path))["metadata"]["resourceVersion"]
        while True:
            is_last = self._is_over
            query = (("watch", "true"), ("timeoutSeconds", "1"), ("resourceVersion", version))
            for line in (await self._talk.client.request("GET", self._path, query)).splitlines():
                events.append(orjson.loads(line))
                version = events[-1]["object"]["metadata"]["resourceVersion"]
            if is_last:
                return events

    async def end(self) -> list[Data]:
        """The events until now."""
        self._is_over = True
        return await self._task


def states(events: list[Data], *path: str) -> list[Any]:
    """The values of a member one after the other."""
    values = []
    for each in events:
        value: Any = each["object"]
        for part in path:
            value = (value or {}).get(part)
        values.append(value)
    return [value for value, _ in groupby(value for value in values if value)]


async def removed(watches: dict[str, Watch]) -> list[str]:
    """Return the kinds and names of the deleted objects, in order."""
    gone = []
    for kind, watch in watches.items():
        for event in await watch.end():
            if event["type"] == "DELETED":
                meta = event["object"]["metadata"]
                gone.append((int(meta["resourceVersion"]), f"{kind} {meta['name']}"))
    return [name for _, name in sorted(gone)]


@pytest.mark.spec("kubermatic", 33)
@played
async def test_the_phases_of_an_import(talk: Talk, /, origin: Server) -> None:
    url = origin.put("/large", guest(1) + os.urandom(96 * MB))
    disks, machines = Watch(talk, DISKS), Watch(talk, VMS)
    await asyncio.sleep(0.5)
    await talk.make(SOURCES, source(url=url))
    await talk.make(VMS, installed("web", size="128Mi"))
    await talk.running("web")
    await talk.until(f"{VMS}/web", lambda found: found["status"]["printableStatus"] == "Running", "the machine says so")
    events = await disks.end()
    phases = ["Pending", "ImportScheduled", "ImportInProgress", "Succeeded"]
    seen = states(events, "status", "phase")
    assert seen == [phase for phase in phases if phase in seen] and {"ImportInProgress", "Succeeded"} <= set(seen), seen
    said = [each for each in states(events, "status", "progress") if each != "N/A"]
    progress = [float(each.removesuffix("%")) for each in said]
    assert progress == sorted(progress) and progress[-1] == 100.0, said
    assert states(await machines.end(), "status", "printableStatus") == ["Provisioning", "Starting", "Running"]


@pytest.mark.spec("stakater", 57)
@played
async def test_the_word_is_the_machines_own(talk: Talk, /, origin: Server) -> None:
    fronts, machines = Watch(talk, stakater.FRONTS), Watch(talk, VMS)
    await asyncio.sleep(0.5)
    await stakater.make(talk, origin)
    await stakater.until_word(talk, "Running")
    await stakater.change(talk, runStrategy="Halted")
    await stakater.until_word(talk, "Stopped")
    said, meant = (
        states(await fronts.end(), "status", "vm", "printableStatus"),
        states(await machines.end(), "status", "printableStatus"),
    )
    wanted = ["Provisioning", "Starting", "Running", "Stopped"]
    for words in (said, meant):
        assert [word for word in words if word in wanted][-4:] == wanted, (said, meant)
    # The front may skip what lasted for a moment, and says nothing else.
    rest = iter(meant)
    assert all(word in rest for word in said), (said, meant)


@pytest.mark.spec("stakater", 67)
@played
async def test_a_stakater_machine_goes_in_order_and_what_is_somebody_elses_stays(talk: Talk, /, origin: Server) -> None:
    await talk.make(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "team-keys"}, "stringData": {"key": KEY}})
    given = {"sshPublicKey": {"secretName": "team-keys"}, "cloudInit": {"password": "a password"}}
    await stakater.make(talk, origin, service={"enabled": True}, networks=None, **given)
    await stakater.run(talk)
    kinds = {"front": stakater.FRONTS, "service": SERVICES, "machine": VMS, "instance": VMIS, "volume": DISKS, "secret": SECRETS}
    watches = {kind: Watch(talk, path) for kind, path in kinds.items()}
    await asyncio.sleep(0.5)
    await talk.client.request("DELETE", f"{stakater.FRONTS}/web")
    await talk.until(f"{stakater.FRONTS}/web", lambda found: not found, "it is gone")
    gone = await removed(watches)
    order = [each for each in gone if each.split()[0] in ("service", "machine", "secret", "front")]
    assert order == ["service web-lb", "machine web", "secret web-cloudinit", "front web"], gone
    assert gone.index("instance web") < gone.index("volume web-rootdisk") < gone.index("secret web-cloudinit")
    assert await talk.get(f"{SECRETS}/team-keys") and talk.host.qemus() == {}


@pytest.mark.spec("vitistack", 62)
@played
async def test_a_vitistack_machine_comes_and_goes_in_order(talk: Talk, /, origin: Server) -> None:
    kinds = {"front": vitistack.MACHINES, "machine": VMS, "instance": VMIS, "claim": CLAIMS}
    watches = {kind: Watch(talk, path) for kind, path in kinds.items()}
    await asyncio.sleep(0.5)
    await vitistack.make(talk, origin)
    first = await vitistack.run(talk)
    held = (await talk.get(f"{vitistack.MACHINES}/web"))["metadata"]["finalizers"]
    assert held == ["machine.vitistack.io/cleanup"]
    await vitistack.stop(talk)
    await talk.verb("web", "start")
    await vitistack.run(talk, first)
    await talk.client.request("DELETE", f"{vitistack.MACHINES}/web")
    await talk.until(f"{vitistack.MACHINES}/web", lambda found: not found, "it is gone")
    phases = states(await watches["front"].end(), "status", "phase")
    assert phases[:5] == ["Pending", "Creating", "Running", "Stopped", "Running"], phases
    assert all(after in STEPS[before].split() for before, after in pairwise(phases)), phases
    gone = [each for each in await removed(watches) if not each.startswith("instance")]
    assert gone == ["machine web", "claim web-root", "front web"]
    assert talk.host.qemus() == {}
