"""Rows of objects that are no machines: one pure function for each topic. `cells` has what the page's columns of the topic show."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import at, conditions, entries, texts
from paddock.fleet.diagnosis.verdict import ObjectVerdict, State
from paddock.fleet.machines import facts, snapshots
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.meta.ages import timestamp
from paddock.kubevirt.kinds.extendedsources import DATA_SOURCE
from paddock.web.answers.rows import WebObjectRow
from paddock.web.images import WebImageSource, WebLibraryImage
from paddock.web.live import kindtable as kinds
from paddock.web.live import parts
from paddock.web.live.machinerows import MACHINE_TARGETS
from paddock.web.live.objects import LiveObjects
from paddock.web.live.parts import Cells, key_of, percent_of, row

IMAGE_KINDS = (kinds.DATA_SOURCES, kinds.IMPORT_CRONS, *kinds.IMAGES, *kinds.PROVIDER_IMAGES)
VOLUME_KINDS = (kinds.CLAIMS, kinds.DATA_VOLUMES)
NETWORK_KINDS = (kinds.ATTACHMENTS, *kinds.NETWORKS, *kinds.PROVIDER_NETWORKS)
SNAPSHOT_KINDS = (kinds.SNAPSHOTS, *kinds.OWN_SNAPSHOTS, kinds.VOLUME_SNAPSHOTS)
POOL_KINDS = (kinds.POOLS, kinds.FLAT_POOLS, kinds.REPLICA_SETS, *kinds.SETS)
MIGRATION_KINDS = (kinds.MIGRATIONS, *kinds.OWN_MIGRATIONS)


def images(objects: LiveObjects) -> Iterator[WebObjectRow]:
    """Yield the images that objects of the API name: `source`, `size`, `os`, `text`."""
    for target in IMAGE_KINDS:
        for data in objects.of(target):
            tried = _tried(data, objects) if target is kinds.DATA_SOURCES else None
            cells: Cells = {
                "source": _source(at(data, "spec", "source")) or _source(at(data, "spec")) or _cron_source(data),
                "size": facts.whole(at(data, "status", "size") or 0),
                "os": " ".join(filter(None, (texts(data, "spec", "distribution", "name"), texts(data, "spec", "distribution", "version")))),
                "text": texts(data, "spec", "readableName") or texts(data, "spec", "metadata", "displayName") or parts.message_of(data),
            }
            if tried is not None and tried.message:
                cells["text"] = tried.message
            judged = tried.verdict if tried is not None else None
            yield row(target, data, cells, [], percent=percent_of(data, "status", "importProgress", "percentage"), judged=judged)


class _Trial(NamedTuple):
    """The outcome of the disks that were made from a DataSource."""

    verdict: ObjectVerdict
    message: str = ""


_TRIALS: dict[State, str] = {"bad": "cannot be read", "good": "is ready", "waits": "is being read"}


def _tried(data: Data, objects: LiveObjects) -> _Trial | None:
    """Judge a DataSource with an address by the disks that read it: it calls itself ready when it is well written.

    None for a DataSource that copies, or says itself that something is wrong.
    """
    if not _address(at(data, "spec", "source")) or parts.verdict_of(kinds.DATA_SOURCES, data).state != "good":
        return None
    own = key_of(data)
    found = {parts.verdict_of(kinds.DATA_VOLUMES, each).state: each for each in objects.of(kinds.DATA_VOLUMES) if own in _read_by(each)}
    for state, word in _TRIALS.items():
        if state in found:
            return _Trial(ObjectVerdict(state, word), _failure(found[state]) if state == "bad" else "")
    return _Trial(ObjectVerdict("unknown", "is not tried yet"))


def _failure(volume: Data) -> str:
    return texts(conditions(volume).get("Running"), "message") or parts.message_of(volume)


def _read_by(volume: Data) -> Iterator[Key]:
    """Yield the DataSource that a DataVolume reads: named, or taken from when it was made."""
    own = key_of(volume)
    if name := texts(volume, "spec", "sourceRef", "name"):
        yield Key(texts(volume, "spec", "sourceRef", "namespace") or own.namespace, name)
    namespace, _, name = texts(volume, "metadata", "annotations", DATA_SOURCE).rpartition("/")
    if name:
        yield Key(namespace or own.namespace, name)


class ImageRows:
    """The images that objects name, and those in the library of the host, where the console is on it."""

    kinds = (*IMAGE_KINDS, kinds.DATA_VOLUMES, *MACHINE_TARGETS)
    seconds = 10.0

    def __init__(self, images: WebImageSource) -> None:
        self._images = images
        self._library: list[WebObjectRow] = []

    async def poll(self, client: Client, namespace: str) -> None:
        """Look into the library, which has no watch."""
        self._library = [_in_library(each) for each in await self._images.library()]

    def rows(self, objects: LiveObjects) -> Iterable[WebObjectRow]:
        return [*images(objects), *self._library]


def _in_library(image: WebLibraryImage) -> WebObjectRow:
    return WebObjectRow(
        id=f"library//{image.digest}",
        group="",
        kind="Image of this host",
        namespace="",
        name=image.name,
        state="good",
        status="in the library",
        created=timestamp(image.created),
        cells={"source": image.source, "size": image.size, "os": image.name, "text": f"sha256:{image.digest[:12]}"},
        machines=[],
        percent=-1,
        keeps=f"paddock image rm {image.digest[:12]} removes it",
    )


def _cron_source(data: Data) -> str:
    source = _source(at(data, "spec", "template", "spec", "source"))
    schedule = texts(data, "spec", "schedule")
    return f"{source} ({schedule})" if source and schedule else source


def _address(source: Any) -> str:
    return next((url for each in ("http", "registry", "s3", "gcs", "imageio", "vddk") if (url := texts(source, each, "url"))), "")


def _source(source: Any) -> str:
    """Return where content comes from, in one word."""
    if url := _address(source):
        return url
    for member in ("pvc", "snapshot", "dataSource", "dataVolume"):
        if name := texts(source, member, "name"):
            return f"{member}/{name}"
    for member in ("libvirt", "vsphere", "proxmox"):
        found = at(source, member)
        if isinstance(found, dict):
            return next((str(each) for each in found.values() if isinstance(each, str)), member)
    return next((each for each in ("upload", "blank") if at(source, each) is not None), "")


def volumes(objects: LiveObjects) -> Iterator[WebObjectRow]:
    """Yield claims, each with the DataVolume that fills it, and lone DataVolumes: `size`, `class`, `access`, `mode`, `source`."""
    fillers = {key_of(each): each for each in objects.of(kinds.DATA_VOLUMES)}
    for claim in objects.of(kinds.CLAIMS):
        filler = fillers.get(key_of(claim))
        if filler is None:
            yield _claim(claim, objects)
            continue
        # People wrote the DataVolume; the claim goes with it.
        yield _data_volume(filler, claim, objects)
        del fillers[key_of(claim)]
    for each in fillers.values():
        yield _data_volume(each, None, objects)


def _claim(data: Data, objects: LiveObjects) -> WebObjectRow:
    return row(kinds.CLAIMS, data, {**_of_claim(data), "source": texts(data, "spec", "dataSource", "name")}, _users(data, objects))


def _of_claim(data: Data) -> Cells:
    size = at(data, "status", "capacity", "storage") or at(data, "spec", "resources", "requests", "storage") or 0
    return {
        "size": facts.whole(size),
        "class": texts(data, "spec", "storageClassName"),
        "access": [str(each) for each in at(data, "spec", "accessModes") or ()],
        "mode": texts(data, "spec", "volumeMode"),
    }


def _data_volume(data: Data, claim: Data | None, objects: LiveObjects) -> WebObjectRow:
    wanted = at(data, "spec", "storage") or at(data, "spec", "pvc") or {}
    cells = _of_claim(claim) if claim is not None else _of_claim({"spec": wanted})
    cells["source"] = _source(at(data, "spec", "source")) or texts(data, "spec", "sourceRef", "name")
    percent = percent_of(data, "status", "progress") if texts(data, "status", "phase") != "Succeeded" else -1
    return row(kinds.DATA_VOLUMES, data, cells, _users(data, objects), percent=percent)


def _users(data: Data, objects: LiveObjects) -> list[str]:
    return list(objects.claims.get(key_of(data), ()))


def networks(objects: LiveObjects) -> Iterator[WebObjectRow]:
    """Yield networks: `type`, `bridge`, `vlan`, `subnet`, `mtu`."""
    for data in objects.of(kinds.ATTACHMENTS):
        yield row(kinds.ATTACHMENTS, data, _cni(texts(data, "spec", "config")), list(objects.networks.get(key_of(data), ())))
    for target, front in kinds.NETWORKS.items():
        for data in objects.of(target):
            spec = at(data, "spec") or {}
            cells: Cells = {"type": front.dialect, "subnet": texts(spec, "ipam", "subnet"), **_plain(spec, "bridge", "vlan", "mtu")}
            machines = [f"{front.word}/{key_of(data).namespace}/{each}" for each in at(data, "status", "connectedMachines") or ()]
            yield row(target, data, cells, _existing(machines, objects))
    for target, front in kinds.PROVIDER_NETWORKS.items():
        for data in objects.of(target):
            network = at(data, "spec", "network") or {}
            cells = {"type": front.dialect, **_plain(network, "mtu")}
            for hypervisor in ("libvirt", "proxmox", "vsphere"):
                cells |= _plain(network.get(hypervisor) or {}, "bridge", "vlan")
            yield row(target, data, cells, [])


def _existing(machines: list[str], objects: LiveObjects) -> list[str]:
    known = {parts.place(each) for each in objects.machines}
    return [each for each in machines if each in known]


def _cni(text: str) -> Cells:
    """Return the cells of a CNI configuration; none for one that is no JSON."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    if isinstance(found, dict) and isinstance(found.get("plugins"), list) and found["plugins"]:
        found = found["plugins"][0]
    subnet = texts(found, "ipam", "subnet") or texts(found, "subnets")
    return {"type": texts(found, "type"), "subnet": subnet, **_plain(found if isinstance(found, dict) else {}, "bridge", "vlan", "mtu")}


def _plain(source: Data, *names: str) -> Cells:
    return {name: source[name] for name in names if isinstance(source.get(name), str | int | float) and source[name] != 0}


def snapshot_rows(objects: LiveObjects) -> Iterator[WebObjectRow]:
    """Yield snapshots: `of`, `consistency`, `size`, `parent`."""
    for target in (kinds.SNAPSHOTS, *kinds.OWN_SNAPSHOTS):
        for data in objects.of(target):
            found = snapshots.row(data)
            machine = _source_machine(target, data, found.machine, objects)
            cells: Cells = {
                "of": found.machine,
                "consistency": found.consistency,
                "size": facts.whole(at(data, "status", "size") or 0),
                "parent": texts(data, "status", "parent", "name"),
            }
            yield row(target, data, cells, machine, percent=percent_of(data, "status", "progress", "percentage"))
    for data in objects.of(kinds.VOLUME_SNAPSHOTS):
        claim = texts(data, "spec", "source", "persistentVolumeClaimName")
        cells = {"of": claim, "size": facts.whole(at(data, "status", "restoreSize") or 0)}
        yield row(kinds.VOLUME_SNAPSHOTS, data, cells, list(objects.claims.get(Key(key_of(data).namespace, claim), ())))


def _source_machine(target: Target[Data], data: Data, name: str, objects: LiveObjects) -> list[str]:
    namespace = key_of(data).namespace
    if front := kinds.OWN_SNAPSHOTS.get(target):
        return _existing([f"{front.word}/{namespace}/{name}"], objects)
    found = objects.places.get(Key(namespace, name))
    return [found] if found is not None else []


def pools(objects: LiveObjects) -> Iterator[WebObjectRow]:
    """Yield series of machines: `replicas`, `ready`, `paused`."""
    for target in POOL_KINDS:
        for data in objects.of(target):
            wanted = at(data, "spec", "replicas")
            cells: Cells = {
                "replicas": 1 if wanted is None else wanted,
                "ready": at(data, "status", "readyReplicas") or 0,
                "paused": "yes" if at(data, "spec", "paused") else "",
            }
            yield row(target, data, cells, _members(data, objects))


def _members(data: Data, objects: LiveObjects) -> list[str]:
    uid = texts(data, "metadata", "uid")
    return [parts.place(each) for each in objects.machines if uid in {texts(owner, "uid") for owner in _owners(each.data)}]


def _owners(data: Data) -> Iterator[Data]:
    yield from entries(data, "metadata", "ownerReferences")


def providers(objects: LiveObjects) -> Iterator[WebObjectRow]:
    """Yield Providers: `type`, `endpoint`, `version`, `count`."""
    for target in kinds.PROVIDERS:
        for data in objects.of(target):
            key = key_of(data)
            machines = [parts.place(each) for each in objects.machines if _is_of(each.data, key)]
            cells: Cells = {
                "type": texts(data, "spec", "type"),
                "endpoint": texts(data, "spec", "endpoint"),
                "version": texts(data, "status", "version"),
                "count": len(machines),
            }
            yield row(target, data, cells, machines)


def _is_of(machine: Data, provider: Key) -> bool:
    ref = at(machine, "spec", "providerRef")
    namespace = texts(ref, "namespace") or texts(machine, "metadata", "namespace")
    return Key(namespace, texts(ref, "name")) == provider


def migrations(objects: LiveObjects) -> Iterator[WebObjectRow]:
    """Yield migrations: `phase`, `from`, `to`, `text`."""
    for data in objects.of(kinds.MIGRATIONS):
        state = at(data, "status", "migrationState") or {}
        cells: Cells = {
            "phase": texts(data, "status", "phase"),
            "from": texts(state, "sourceNode"),
            "to": texts(state, "targetNode"),
            "text": texts(state, "failureReason"),
        }
        machine = objects.places.get(Key(key_of(data).namespace, texts(data, "spec", "vmiName")))
        yield row(kinds.MIGRATIONS, data, cells, [machine] if machine else [])
    for target, front in kinds.OWN_MIGRATIONS.items():
        for data in objects.of(target):
            cells = {
                "phase": texts(data, "status", "phase"),
                "from": texts(data, "spec", "source", "providerRef", "name"),
                "to": texts(data, "spec", "target", "providerRef", "name"),
                "text": texts(data, "status", "message"),
            }
            machine = f"{front.word}/{key_of(data).namespace}/{texts(data, 'spec', 'source', 'vmRef', 'name')}"
            percent = percent_of(data, "status", "progress", "percentage")
            yield row(target, data, cells, _existing([machine], objects), percent=percent)
