"""`paddock plan` beside machines that run: what it calls live, a restart, refused or lost is what becomes of the same change.

`SLOW=1` makes all edits of the machine's template, not some.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from paddock.base.jsondata import copied
from paddock.kubernetes import catalog
from paddock.kubernetes.client.errors import Conflict, Invalid
from tests.coroutines import played
from tests.host.guests import Registry, Shelf
from tests.host.machines import bootsector
from tests.host.owners.conftest import CLAIMS, DATA_VOLUMES, claim_spec, gone, installed, power
from tests.host.pools.test_state_preservation import POOLS, pool
from tests.host.runs.conftest import VMIS, VMS, Host, Talk, condition, machine, phase
from tests.scenario.plan.bases import Change, edits

pytestmark = pytest.mark.needs("qemu")
Data = dict[str, Any]
_MOST = 1000 if os.environ.get("SLOW") else 60
_SNAPSHOTS = "/apis/snapshot.kubevirt.io/v1beta1/namespaces/default/virtualmachinesnapshots"
# Grown as far as the running machine can: test_plan.py.
_GROWING = (("domain", "cpu", "sockets"), ("domain", "memory", "guest"))


def planned(folder: Path, changes: Sequence[tuple[Data, Data]]) -> list[dict[str, str]]:
    """Return the effect of each field of each change, as `paddock plan` gives them."""
    for name, side in (("old", 0), ("new", 1)):
        text = "\n".join(json.dumps(_named(change[side], number)) for number, change in enumerate(changes))
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    given = ["plan", "-f", str(folder / "new.json"), "--against", str(folder / "old.json"), "-o", "json"]
    said = subprocess.run([sys.executable, "-m", "paddock.app", *given], capture_output=True, text=True, check=False)
    found: list[dict[str, str]] = [{} for _ in changes]
    for each in json.loads(said.stdout)["changes"]:
        found[int(each["object"].rpartition("/")[2].removeprefix("o"))][each.get("field", "")] = each["effect"]
    return found


def _named(document: Data, number: int) -> Data:
    return {**document, "metadata": {**document["metadata"], "name": f"o{number}", "namespace": "default"}}


def plain(found: Data) -> Data:
    """An object of the server as a user would write it."""
    return {
        "apiVersion": found["apiVersion"],
        "kind": found["kind"],
        "metadata": {"name": found["metadata"]["name"]},
        "spec": found["spec"],
    }


async def set_spec(talk: Talk, name: str, spec: Data) -> Data:
    """Replace the spec of a machine; its form when the controller has dealt with it."""
    patch = orjson.dumps([{"op": "replace", "path": "/spec", "value": spec}])
    made = orjson.loads(await talk.client.request("PATCH", f"{VMS}/{name}", body=patch, media="application/json-patch+json"))
    generation = made["metadata"]["generation"]
    return await talk.until(f"{VMS}/{name}", lambda found: found["status"].get("desiredGeneration") == generation, "it is seen", 30)


def waits(found: Data) -> bool:
    """Return True if a machine needs a restart."""
    return condition(found, "RestartRequired").get("status") == "True"


@pytest.fixture
def image(work: Path, registry: Registry) -> str:
    """The guest of 512 bytes as a containerDisk."""
    return registry.push("disks/boot:1", {"disk/disk.img": bootsector.write(work / "disk.img")})


def _fixed(change: Change) -> bool:
    return not any(change.path[3 : 3 + len(part)] == part for part in _GROWING)


@pytest.mark.spec("kubevirt", 116)
@played
async def test_every_edit_of_a_template_waits_or_does_not_as_planned(talk: Talk, /, host: Host, image: str, tmp_path: Path) -> None:
    kind = catalog.find("kubevirt.io", "VirtualMachine")
    assert kind is not None
    wrong: dict[str, tuple[dict[str, str], bool]] = {}
    tried: dict[bool, int] = {True: 0, False: 0}
    await talk.make(VMS, machine("web", image))
    run = (await talk.running("web"))["metadata"]["uid"]
    (pid,) = host.qemus()[run]
    base = plain(await talk.get(f"{VMS}/web"))
    changes = [each for each in edits(kind, base, ("spec", "template"), _MOST) if _fixed(each)]
    verdicts = planned(tmp_path, [(each.old, each.new) for each in changes])
    for change, verdict in zip(changes, verdicts, strict=True):
        try:
            seen = waits(await set_spec(talk, "web", change.new["spec"]))
        except Invalid:
            assert set(verdict.values()) & {"refused", "fails"}, (change.path, verdict)
            continue
        tried[seen] += 1
        if seen != (not {"restart", "data loss"}.isdisjoint(verdict.values())):
            wrong[".".join(map(str, change.path))] = verdict, seen
        assert not waits(await set_spec(talk, "web", base["spec"])), change.path
    # None of them touched the machine.
    assert (await talk.running("web"))["metadata"]["uid"] == run and host.qemus() == {run: [pid]}
    assert not wrong
    assert tried[True] > 20 and tried[False] > 2, tried


_DISKS = [{"name": "root", "disk": {"bus": "virtio"}}]
_POD = {"name": "default", "pod": {}}
_LINK = {"name": "default", "masquerade": {}}
# by name: a merge into the template's spec
RESTARTS: dict[str, Data] = {
    "hostname": {"hostname": "other"},
    "grace": {"terminationGracePeriodSeconds": 7},
    "cores": {"domain": {"cpu": {"cores": 2}}},
    "serial": {"domain": {"devices": {"disks": [{**_DISKS[0], "serial": "seven"}]}}},
    "clock": {"domain": {"clock": {"timezone": "Europe/Oslo"}}},
}
LABEL: Data = {"metadata": {"labels": {"tier": "front"}}}
LIVE: dict[str, Data] = {
    "selector": {"spec": {"nodeSelector": {"disk": "fast"}}},
    "link": {"spec": {"domain": {"devices": {"interfaces": [{**_LINK, "state": "down"}]}}}},
}


def merged(base: Data, top: Data) -> Data:
    """A merge patch, applied."""
    return {**base, **{key: merged(base.get(key) or {}, each) if isinstance(each, dict) else each for key, each in top.items()}}


@pytest.mark.spec("kubevirt", 116)
@played
async def test_what_is_live_is_there_at_once_and_what_waits_is_there_after_a_restart(
    talk: Talk, /, host: Host, image: str, tmp_path: Path
) -> None:
    document = machine("web", image, networks=[_POD], terminationGracePeriodSeconds=0)
    document["spec"]["template"]["spec"]["domain"]["devices"]["interfaces"] = [_LINK]
    await talk.make(VMS, document)
    run = (await talk.running("web"))["metadata"]["uid"]
    (pid,) = host.qemus()[run]
    old = plain(await talk.get(f"{VMS}/web"))
    now = old
    for change in LIVE.values():
        new = merged(now, {"spec": {"template": change}})
        assert set(planned(tmp_path, [(now, new)])[0].values()) == {"live"}, change
        assert not waits(await set_spec(talk, "web", new["spec"])), change
        now = new

    def has_all(found: Data) -> bool:
        link: Data = next(iter(found["status"].get("interfaces") or ()), {})
        return found["spec"].get("nodeSelector") == {"disk": "fast"} and link.get("linkState") == "down"

    await talk.until(f"{VMIS}/web", has_all, "what is live is there", 20)
    assert host.qemus() == {run: [pid]}
    # A label waits for the next start without asking for one.
    new = merged(now, {"spec": {"template": LABEL}})
    assert set(planned(tmp_path, [(now, new)])[0].values()) == {"restart"}
    assert not waits(await set_spec(talk, "web", new["spec"]))
    assert "tier" not in (await talk.get(f"{VMIS}/web"))["metadata"]["labels"]
    now = new
    for change in RESTARTS.values():
        new = merged(now, {"spec": {"template": {"spec": change}}})
        assert set(planned(tmp_path, [(now, new)])[0].values()) == {"restart"}, change
        assert waits(await set_spec(talk, "web", new["spec"])), change
        now = new
    assert host.qemus() == {run: [pid]}
    spec = (await talk.get(f"{VMIS}/web"))["spec"]
    assert (spec.get("hostname"), spec["domain"]["cpu"]["cores"]) != ("other", 2)
    (node,) = (await talk.get("/api/v1/nodes"))["items"]
    await talk.change(f"/api/v1/nodes/{node['metadata']['name']}", {"metadata": {"labels": {"disk": "fast"}}})
    await talk.verb("web", "restart")
    await talk.until(f"{VMIS}/web", lambda found: phase(found) == "Running" and found["metadata"]["uid"] != run, "it runs anew", 60)
    found = await talk.until(f"{VMS}/web", lambda found: not waits(found), "nothing waits", 20)
    instance = await talk.get(f"{VMIS}/web")
    spec = instance["spec"]
    assert instance["metadata"]["labels"]["tier"] == "front"
    assert (spec["hostname"], spec["domain"]["cpu"]["cores"], spec["terminationGracePeriodSeconds"]) == ("other", 2, 7)
    ((pid,),) = host.qemus().values()
    words = Path(f"/proc/{pid}/cmdline").read_bytes().decode()
    assert "seven" in words and "cores=2" in words
    assert found["metadata"]["uid"] == (await talk.get(f"{VMS}/web"))["metadata"]["uid"]


@pytest.mark.spec("kubevirt", 116)
@played
async def test_what_is_refused_changes_nothing(talk: Talk, /, host: Host, work: Path, web: Shelf, tmp_path: Path) -> None:
    url = web.put(bootsector.write(work / "guest.img"))
    await talk.make(VMS, installed("web", "disk", url))
    run = (await talk.running("web"))["metadata"]["uid"]
    kind = {"apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": "VirtualMachineSnapshot", "metadata": {"name": "one"}}
    source = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web"}
    await talk.make(_SNAPSHOTS, {**kind, "spec": {"source": source}})
    await talk.until(f"{_SNAPSHOTS}/one", lambda found: found.get("status", {}).get("readyToUse"), "it is taken", 30)
    refused: dict[str, Data] = {
        f"{DATA_VOLUMES}/disk": {"source": {"http": {"url": f"{url}.other"}}},
        f"{CLAIMS}/disk": {"resources": {"requests": {"storage": "4Mi"}}},
        f"{_SNAPSHOTS}/one": {"source": {**source, "name": "other"}},
        f"{VMIS}/web": {"domain": {"cpu": {"cores": 4}}},
    }
    for path, change in refused.items():
        before = await talk.get(path)
        old = plain(before)
        effects = planned(tmp_path, [(old, merged(old, {"spec": change}))])[0]
        assert set(effects.values()) <= {"refused", "recreate"}, (path, effects)
        with pytest.raises((Invalid, Conflict)):
            await talk.change(path, {"spec": change})
        assert (await talk.get(path))["spec"] == before["spec"]
    assert set(host.qemus()) == {run}


def is_another(former: set[str], found: Data) -> bool:
    """Return True if a list has one object, and it is none of the former ones."""
    return len(found["items"]) == 1 and found["items"][0]["metadata"]["uid"] not in former


async def effect(talk: Talk, folder: Path, path: str, change: Data) -> set[str]:
    """Return the effects that are planned for a change of a spec."""
    old = plain(await talk.get(path))
    return set(planned(folder, [(old, merged(old, {"spec": change}))])[0].values())


@pytest.mark.spec("kubevirt", 116)
@played
async def test_a_pool_loses_what_plan_says(talk: Talk, /, work: Path, web: Shelf, tmp_path: Path) -> None:
    url = web.put(bootsector.write(work / "guest.img"))
    body = pool(url, "8Mi", "32Mi", "Halted")
    del body["spec"]["scaleInStrategy"]
    await talk.make(POOLS, body)

    def are_filled(found: Data) -> bool:
        return [phase(each) for each in found["items"]] == ["Succeeded"] * 2

    await talk.until(DATA_VOLUMES, are_filled, "the disks are filled", 30)
    # A smaller pool loses the disks of the machines that go.
    smaller = {"replicas": 1}
    assert await effect(talk, tmp_path, f"{POOLS}/web", smaller) == {"data loss"}
    await talk.change(f"{POOLS}/web", {"spec": smaller})
    await talk.until(CLAIMS, lambda found: len(found["items"]) == 1, "a disk is gone", 30)
    former = {each["metadata"]["uid"] for path in (VMS, CLAIMS) for each in (await talk.get(path))["items"]}
    # Other disks are other machines, of any number.
    template = copied(body["spec"]["virtualMachineTemplate"]["spec"]["dataVolumeTemplates"])
    template[0]["spec"]["pvc"] = claim_spec() | {"resources": {"requests": {"storage": "9Mi"}}}
    larger = {"virtualMachineTemplate": {"spec": {"dataVolumeTemplates": template}}}
    assert await effect(talk, tmp_path, f"{POOLS}/web", larger) == {"data loss"}
    await talk.change(f"{POOLS}/web", {"spec": larger})
    for path in (VMS, CLAIMS):
        await talk.until(path, partial(is_another, former), "it is another one", 30)


@pytest.mark.spec("kubevirt", 116)
@played
async def test_an_empty_disk_of_another_size_is_another_one(talk: Talk, /, host: Host, image: str, tmp_path: Path) -> None:
    await talk.make(VMS, machine("web", image, volumes=[{"name": "tmp", "emptyDisk": {"capacity": "2Mi"}}]))
    await talk.running("web")
    volumes = copied((await talk.get(f"{VMS}/web"))["spec"]["template"]["spec"]["volumes"])
    next(each for each in volumes if each["name"] == "tmp")["emptyDisk"]["capacity"] = "4Mi"
    change = {"template": {"spec": {"volumes": volumes}}}
    assert await effect(talk, tmp_path, f"{VMS}/web", change) == {"data loss"}
    scratch = host.root / "engine" / "scratch"
    before = set(scratch.glob("[!.]*"))
    await talk.change(f"{VMS}/web", {"spec": change})
    await talk.until(f"{VMS}/web", waits, "it waits", 20)
    assert set(scratch.glob("[!.]*")) == before
    await power(talk, "web", "Halted")
    await gone(talk, f"{VMIS}/web")
    await power(talk, "web", "Always")
    await talk.running("web", 30)
    (made,) = scratch.glob("[!.]*")
    assert made not in before and (made / "tmp.img").stat().st_size == 4 << 20
