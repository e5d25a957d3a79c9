"""`paddock plan` and what happens agree: every field of the live kinds is changed, planned by the command line, and tried.

What the API takes or refuses is asked of the server in this process, by a dry run. What reaches a running machine is seen on a whole host
in virtual time, where the controllers and the engine's limits decide. `SLOW=1` takes all changes of the large kinds, not some.
"""

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from paddock.base.jsondata import copied
from paddock.kubernetes import admission, catalog
from paddock.kubernetes.schema.kind import AdmissionSettings, Kind
from tests import virtualtime
from tests.coroutines import run_by
from tests.kit.engine.fakehost import FakeHost
from tests.kit.servers.apiharness import Harness
from tests.scenario.plan.bases import GUEST, STAKATER, VITISTACK, Change, changes
from tests.scenario.why.front_faults import source
from tests.unit.cli.commands import paddock

Data = dict[str, Any]
_LIVE = (
    *("", "k8s.cni.cncf.io", "storage.k8s.io", "snapshot.storage.k8s.io", "virtualization.k8c.io"),
    *("infrastructure.stakater.com", "vitistack.io", "infra.virtrigaud.io"),
    *(f"{name}kubevirt.io" for name in ("", "pool.", "snapshot.", "clone.", "export.", "migrations.", "instancetype.", "cdi.")),
)
# Nobody writes Events.
KINDS = [kind for kind in catalog.every() if kind.group in _LIVE and (kind.group, kind.kind) != ("", "Event")]
# What a controller has written by then: rules about changes look at it.
_ONCE_CARRIED_OUT = {
    ("infrastructure.stakater.com", "VirtualMachine"): {"vm": {"name": "made"}},
    ("infra.virtrigaud.io", "VirtualMachine"): {"id": "made"},
}
_MOST = 0 if os.environ.get("SLOW") else 120


def planned(tried: Sequence[Change], folder: Path) -> dict[str, dict[str, str]]:
    """The effects that the command names, by object and field."""
    for name, side in (("old", [each.old for each in tried]), ("new", [each.new for each in tried])):
        (folder / f"{name}.json").write_text("\n".join(map(json.dumps, side)), encoding="utf-8")
    answer = paddock("plan", "-f", str(folder / "new.json"), "--against", str(folder / "old.json"), "-o", "json")
    assert answer.out, answer.err
    found: dict[str, dict[str, str]] = {}
    for each in json.loads(answer.out)["changes"]:
        found.setdefault(each["object"].rpartition("/")[2], {})[each.get("field", "")] = each["effect"]
    return found


# --- the API --------------------------------------------------------------------------------------------------------------


async def refused(kind: Kind, tried: Sequence[Change]) -> dict[str, str]:
    """Return the server's message for each change; "" if it takes the change. Objects that it refuses altogether are left out."""
    root = f"/apis/{kind.group}/{kind.storage_version}" if kind.group else "/api/v1"
    path = f"{root}{'/namespaces/default' if kind.namespaced else ''}/{kind.plural}"
    found = {}
    async with Harness() as api:
        for each in tried:
            name = each.old["metadata"]["name"]
            probe = {**each.new, "metadata": {**each.new["metadata"], "name": f"{name}x"}}
            if (await api.post(path, each.old)).status != 201 or (await api.post(f"{path}?dryRun=All", probe)).status != 201:
                continue
            stored = (await api.get(f"{path}/{name}")).data
            if (kind.group, kind.kind) in _ONCE_CARRIED_OUT:
                reply = await api.put(f"{path}/{name}/status", {**stored, "status": _ONCE_CARRIED_OUT[kind.group, kind.kind]})
                assert reply.status == 200, reply.data
                stored = reply.data
            revision = {"resourceVersion": stored["metadata"]["resourceVersion"]}
            reply = await api.put(f"{path}/{name}?dryRun=All", {**each.new, "metadata": {**each.new["metadata"], **revision}})
            found[name] = "" if reply.status == 200 else reply.data["message"]
    return found


@pytest.mark.spec("kubevirt", 116)
@pytest.mark.spec("stakater", 71, "`paddock plan` refuses another image or storage class")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.kind}.{kind.group or 'core'}")
def test_plan_refuses_what_the_server_refuses(kind: Kind, tmp_path: Path) -> None:
    tried = list(changes(kind, _MOST))
    verdicts = planned(tried, tmp_path) if tried else {}
    said = asyncio.run(refused(kind, tried))
    wrong = {
        ".".join(map(str, each.path)): (verdicts.get(name), said[name])
        for each in tried
        if (name := each.old["metadata"]["name"]) in said and ("refused" in verdicts.get(name, {}).values()) != bool(said[name])
    }
    assert not wrong


def test_enough_changes_are_tried() -> None:
    counts = {f"{kind.kind}.{kind.group}": len(list(changes(kind, 120))) for kind in KINDS}
    assert sum(counts.values()) > 1500, counts
    assert all(counts[each] > 25 for each in ("VirtualMachine.kubevirt.io", "Machine.vitistack.io", "DataVolume.cdi.kubevirt.io")), counts


# --- the running machine --------------------------------------------------------------------------------------------------


def _machine(name: str, change: Data | None = None, **hardware: Any) -> Data:
    """KubeVirt's machine; the change is a merge into its template's spec."""
    guest = copied(GUEST)
    guest["volumes"] = [{"name": "root", "emptyDisk": {"capacity": "1Gi"}}]
    guest["domain"]["firmware"] = hardware.pop("firmware", {})
    guest["domain"]["cpu"].update(hardware.pop("cpu", {}))
    guest["domain"]["memory"].update(hardware.pop("memory", {}))
    guest["domain"]["devices"].update(hardware.pop("devices", {}))
    guest.update(hardware)
    spec = {"runStrategy": "Always", "template": {"spec": _merged(guest, change or {})}}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def _merged(base: Data, top: Data) -> Data:
    return {**base, **{key: _merged(base[key], each) if isinstance(each, dict) and key in base else each for key, each in top.items()}}


_MORE_DISK = {"name": "more", "persistentVolumeClaim": {"claimName": "more", "hotpluggable": True}}
_ROOT = {"name": "root", "emptyDisk": {"capacity": "1Gi"}}
_POD, _CARD = {"name": "default", "pod": {}}, {"name": "default", "masquerade": {}}
_LAN, _BRIDGED = {"name": "lan", "multus": {"networkName": "lan"}}, {"name": "lan", "bridge": {}}
_SECURE = {"firmware": {"bootloader": {"efi": {"secureBoot": True}}}, "features": {"smm": {"enabled": True}}}
# what the machine is made with, the change, and whether it waits for a restart
MACHINE_CHANGES: dict[str, tuple[Data, Data, bool]] = {
    "sockets-up": ({}, {"domain": {"cpu": {"sockets": 2}}}, False),
    "sockets-to-the-most": ({}, {"domain": {"cpu": {"sockets": 4}}}, False),
    "sockets-above-the-most": ({}, {"domain": {"cpu": {"sockets": 9}}}, True),
    "sockets-down": ({"cpu": {"sockets": 2}}, {"domain": {"cpu": {"sockets": 1}}}, True),
    "cores-up": ({}, {"domain": {"cpu": {"cores": 2}}}, True),
    "memory-up": ({}, {"domain": {"memory": {"guest": "2Gi"}}}, False),
    "memory-to-the-most": ({}, {"domain": {"memory": {"guest": "4Gi"}}}, False),
    "memory-above-the-most": ({}, {"domain": {"memory": {"guest": "5Gi"}}}, True),
    "memory-of-a-small-guest": ({"memory": {"guest": "256Mi"}}, {"domain": {"memory": {"guest": "512Mi"}}}, True),
    "memory-down": ({}, {"domain": {"memory": {"guest": "512Mi"}}}, True),
    "a-plugged-disk": (
        {},
        {
            "domain": {"devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}, {"name": "more", "disk": {"bus": "scsi"}}]}},
            "volumes": [_ROOT, _MORE_DISK],
        },
        False,
    ),
    "a-disk-of-another-bus": ({}, {"domain": {"devices": {"disks": [{"name": "root", "disk": {"bus": "sata"}}]}}}, True),
    "a-serial-number": ({}, {"domain": {"devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}, "serial": "7"}]}}}, True),
    "a-bridged-card": ({}, {"domain": {"devices": {"interfaces": [_CARD, _BRIDGED]}}, "networks": [_POD, _LAN]}, False),
    "a-card-of-another-model": ({}, {"domain": {"devices": {"interfaces": [{**_CARD, "model": "e1000"}]}}}, True),
    "a-link-down": ({}, {"domain": {"devices": {"interfaces": [{**_CARD, "state": "down"}]}}}, False),
    "a-node-selector": ({}, {"nodeSelector": {"disk": "fast"}}, False),
    "a-grace-period": ({}, {"terminationGracePeriodSeconds": 7}, True),
    "a-hostname": ({}, {"hostname": "other"}, True),
}
_STAKATER_LAN = {"name": "lan", "type": "multus", "bindingName": "bridge", "multus": {"networkName": "lan"}}
_STAKATER_CHANGES: dict[str, tuple[Data, bool]] = {
    "sockets": ({"cpu": {"sockets": 9}}, True),
    "memory": ({"memory": {"guest": "5Gi"}}, True),
    "cloud-init": ({"cloudInit": {"userData": "#cloud-config\nhostname: other\n"}}, True),
    "labels": ({"additionalLabels": {"tier": "front"}}, False),
    "disk": ({"additionalDisks": [{"name": "data", "size": "1Gi"}]}, True),
    "card": ({"networks": [*STAKATER["parameters"]["networks"], _STAKATER_LAN]}, False),
    "size": ({"storage": {"size": "3Gi"}}, False),
    "grace": ({"terminationGracePeriodSeconds": 5}, True),
    "memory-live": ({"memory": {"guest": "2Gi"}}, False),
}
_VITISTACK_CHANGES: dict[str, tuple[Data, bool]] = {
    "memory": ({"resources": {"memory": {"size": "9Gi"}}}, True),
    "memory-live": ({"resources": {"memory": {"size": "4Gi"}}}, False),
    "cloud-init": ({"cloudInit": {"userData": "#cloud-config\nhostname: other\n"}}, True),
    "cores": ({"resources": {"cpu": {"cores": 2}}}, True),
    "disk": ({"disks": [{"name": "root", "size": "20Gi"}, {"name": "data", "size": "1Gi"}]}, True),
    "size": ({"disks": [{"name": "root", "size": "21Gi"}]}, False),
    "card": ({"networks": [{"name": "eth0", "networkName": "vlan"}]}, True),
    "boot-order": ({"bootOrder": ["network", "disk"]}, True),
}


def _front(api_version: str, kind: str, name: str, spec: Data) -> Data:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def _all() -> list[tuple[Change, bool]]:
    found = []
    for name, (made, change, waits) in MACHINE_CHANGES.items():
        found.append((Change((), _machine(name, **copied(made)), _machine(name, change, **copied(made))), waits))
    plain = _merged(copied(STAKATER), {"parameters": {"firmware": {"efi": False, "secureBoot": False}}})
    for name, (change, waits) in _STAKATER_CHANGES.items():
        about = ("infrastructure.stakater.com/v1", "VirtualMachine", f"stakater-{name}")
        found.append((Change((), _front(*about, plain), _front(*about, _merged(copied(plain), {"parameters": change}))), waits))
    for name, (change, waits) in _VITISTACK_CHANGES.items():
        machine = ("vitistack.io/v1alpha1", "Machine", f"vitistack-{name}")
        found.append((Change((), _front(*machine, VITISTACK), _front(*machine, _merged(copied(VITISTACK), change))), waits))
    return found


@pytest.mark.spec("kubevirt", 116)
@run_by(virtualtime.run)
async def test_plan_knows_what_waits_for_a_restart(tmp_path: Path) -> None:
    tried = _all()
    verdicts = planned([change for change, _ in tried], tmp_path)
    (tmp_path / "host").mkdir()
    seen: dict[str, bool] = {}
    async with FakeHost(tmp_path / "host") as host:
        await _surroundings(host)
        for change, _ in tried:
            reply = await host.api.post(_path(change.old), change.old)
            assert reply.status == 201, reply.data
        await asyncio.sleep(120)
        for change, _ in tried:
            name = change.old["metadata"]["name"]
            assert await host.status(name) == "Running", (name, (await host.vm(name)).get("status"))
            reply = await host.api.merge(f"{_path(change.old)}/{name}", {"spec": change.new["spec"]})
            assert reply.status == 200, reply.data
        await asyncio.sleep(60)
        for change, _ in tried:
            name = change.old["metadata"]["name"]
            conditions = (await host.vm(name))["status"]["conditions"]
            seen[name] = any(each["type"] == "RestartRequired" and each["status"] == "True" for each in conditions)
    said = {name: "restart" in effects.values() for name, effects in verdicts.items()}
    assert seen == {change.old["metadata"]["name"]: waits for change, waits in tried}
    assert said == seen


def test_every_field_of_a_machine_waits_or_does_not_as_planned(tmp_path: Path) -> None:
    """The same for fields that nobody chose: machines that run are changed, and say whether they need a restart."""
    kind = catalog.find("kubevirt.io", "VirtualMachine")
    assert kind is not None
    made = (Change(each.path, _own_disk(each.old), _own_disk(each.new)) for each in changes(kind, _MOST))
    # A lun needs a claim.
    tried = [each for each in made if all(admission.admit(copied(side), AdmissionSettings()).accepted for side in (each.old, each.new))]
    verdicts = planned(tried, tmp_path)
    waits: dict[str, bool] = {}

    async def batch(some: Sequence[Change], root: Path) -> None:
        async with FakeHost(root) as host:
            await _surroundings(host)
            made = [each for each in some if (await host.api.post(_path(each.old), each.old)).status == 201]
            await asyncio.sleep(60)
            running = [each for each in made if await host.status(each.old["metadata"]["name"]) == "Running"]
            first = {each: await _uid(host, each) for each in map(_name, running)}
            replies = [await host.api.merge(f"{_path(each.old)}/{_name(each)}", {"spec": _patch(each.old, each.new)}) for each in running]
            await asyncio.sleep(30)
            for name in (_name(each) for each, reply in zip(running, replies, strict=True) if reply.status == 200):
                # One that was ended meanwhile, by a probe that nobody answers, has restarted.
                if await _uid(host, name) == first[name]:
                    conditions = (await host.vm(name))["status"]["conditions"]
                    waits[name] = any(each["type"] == "RestartRequired" for each in conditions)

    for number in range(0, len(tried), _BATCH):
        root = tmp_path / f"host{number}"
        root.mkdir()
        virtualtime.run(batch(tried[number : number + _BATCH], root))
    # A disk that is lost is lost at the restart.
    said = {name: not {"restart", "data loss"}.isdisjoint(verdicts.get(name, {}).values()) for name in waits}
    fields = {each.old["metadata"]["name"]: ".".join(map(str, each.path)) for each in tried}
    # Labels and annotations wait for the next start without a condition that asks for one.
    kept = {name for name in waits if fields[name].startswith("spec.template.metadata.")}
    assert not any(waits[name] for name in kept)
    wrong = {fields[name]: (verdicts.get(name), waits[name]) for name in waits if said[name] != (waits[name] or name in kept)}
    assert not wrong
    assert len(waits) > 40, len(waits)


def _name(change: Change) -> str:
    return str(change.old["metadata"]["name"])


async def _uid(host: FakeHost, name: str) -> str:
    return str((await host.vmi(name)).get("metadata", {}).get("uid"))


# A host has memory for so many.
_BATCH = 40


def _own_disk(document: Data) -> Data:
    """The machine with a root disk of its own, which is there at once."""
    found: Data = copied(document)
    for each in found["spec"]["template"]["spec"].get("volumes") or ():
        if (each.get("persistentVolumeClaim") or {}).get("claimName") == "root":
            del each["persistentVolumeClaim"]
            each["emptyDisk"] = {"capacity": "1Gi"}
    return found


def _patch(old: Data, new: Data) -> Data:
    """A merge patch from the one to the other spec."""

    def changed(before: Any, after: Any) -> Any:
        if not isinstance(before, dict) or not isinstance(after, dict):
            return after
        return {**{key: None for key in before if key not in after}, **{key: changed(before.get(key), each) for key, each in after.items()}}

    found: Data = changed(old["spec"], new["spec"])
    return found


def _path(document: Data) -> str:
    return f"/apis/{document['apiVersion']}/namespaces/default/{document['kind'].lower()}s"


async def _surroundings(host: FakeHost) -> None:
    """Create the objects that the machines refer to."""
    await source(host)
    lan = {"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": {"name": "lan"}}
    config = json.dumps({"cniVersion": "0.3.1", "type": "bridge", "bridge": "br0"})
    reply = await host.api.post(
        "/apis/k8s.cni.cncf.io/v1/namespaces/default/network-attachment-definitions", {**lan, "spec": {"config": config}}
    )
    assert reply.status == 201, reply.data
    vlan = _front("vitistack.io/v1alpha1", "NetworkConfiguration", "vlan", {"bridge": "br0", "vlan": 5})
    assert (await host.api.post(_path(vlan), vlan)).status == 201
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await host.make({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "more"}, "spec": claim})


# --- what is not known from the table alone ---------------------------------------------------------------------------------


def effects(tmp_path: Path, old: Data, new: Data) -> dict[str, str]:
    """The effects of one change."""
    return planned([Change((), old, new)], tmp_path)[old["metadata"]["name"]]


@pytest.mark.spec("vitistack", 81, "`paddock plan` says that a Machine of an unknown template fails")
def test_an_unknown_template_fails(tmp_path: Path) -> None:
    about = ("vitistack.io/v1alpha1", "Machine", "web")
    old, new = _front(*about, VITISTACK), _front(*about, {**VITISTACK, "template": "huge"})
    assert effects(tmp_path, old, new) == {"spec.template": "fails"}
    assert effects(tmp_path, old, {**new, "spec": {**VITISTACK, "template": "medium"}}) == {"spec.template": "restart"}


def test_virtrigauds_machines_are_carried_out(tmp_path: Path) -> None:
    spec = {"providerRef": {"name": "p"}, "classRef": {"name": "small"}, "imageRef": {"name": "i"}}
    about = ("infra.virtrigaud.io/v1beta1", "VirtualMachine", "web")
    old, new = _front(*about, spec), _front(*about, {**spec, "classRef": {"name": "large"}, "providerRef": {"name": "q"}})
    effects(tmp_path, old, new)
    folder = ("-f", str(tmp_path / "new.json"), "--against", str(tmp_path / "old.json"))
    for target in ("embedded", "cluster"):
        there = paddock("plan", *folder, "--target", target).out
        assert "refused: VirtualMachine/web: spec.providerRef.name" in there and "restart: VirtualMachine/web: spec.classRef.name" in there


def test_processors_under_secure_boot_are_plugged(tmp_path: Path) -> None:
    old = _machine("web", {"domain": _SECURE})
    new = _machine("web", _merged({"domain": copied(_SECURE)}, {"domain": {"cpu": {"sockets": 2, "cores": 1, "threads": 1}}}))
    assert effects(tmp_path, old, new) == {"spec.template.spec.domain.cpu.sockets": "live"}


def test_a_machine_without_slots_waits(tmp_path: Path) -> None:
    old = _machine("web", devices={"disableHotplug": True})
    new = _machine("web", {"domain": {"cpu": {"sockets": 2}}}, devices={"disableHotplug": True})
    assert effects(tmp_path, old, new) == {"spec.template.spec.domain.cpu.sockets": "restart"}
