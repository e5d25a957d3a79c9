"""Storage of the reference cluster: directories of the node for claims, and a stand-in for CDI that fills them.

`python -m tests.reference.cluster.storage DIRECTORY [stand-in]` runs both as controllers on the host. A claim of one of the classes gets a
directory of the node. The stand-in gives a DataVolume a claim, whose disk is downloaded from the host's network, copied from another claim,
uploaded (`uploads.py`), or made blank. The node has no block devices to give, so a claim with `volumeMode: Block` stays pending.
"""

import asyncio
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from paddock.base import quantity
from paddock.base.clock import SystemClock
from paddock.base.errors import Transient
from paddock.base.jsondata import Data
from paddock.kubernetes.client import kubeconfig
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import AlreadyExists
from paddock.kubernetes.client.http.https import Https
from paddock.kubernetes.client.options import WriteOptions, merge_patch
from paddock.kubernetes.client.target import Key, plain
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Controller, Outcome, again, owners
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubernetes.runtime.reference import owned, reference
from paddock.kubernetes.storage import claimsizes
from tests.reference import cdidefinitions
from tests.reference.cluster import content, control
from tests.reference.cluster.forward import python
from tests.reference.cluster.namespace import HOSTNAME, Machine

PROVISIONER = "reference.invalid/directory"
# The default class first; the others are what the examples of the dialects name.
CLASSES = ("usual", "fast-ssd", "ocs-storagecluster-ceph-rbd")
_ON_NODE = "/var/lib/volumes"
_CLAIMS = plain("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
_VOLUMES = plain("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
_DISKS = plain("cdi.kubevirt.io", "v1beta1", "datavolumes", "DataVolume")
_SOURCES = plain("cdi.kubevirt.io", "v1beta1", "datasources", "DataSource")
_PROFILES = plain("cdi.kubevirt.io", "v1beta1", "storageprofiles", "StorageProfile", namespaced=False)
_STATUS = WriteOptions(subresource="status")
_LOOK_SECONDS = 1.0
_STAND_IN = "stand-in"


def install(machine: Machine, *, stand_in: bool) -> None:
    """Install the classes, and CDI's kinds where a stand-in is to fill the disks; start the controllers."""
    control.apply(machine, *(_class(name) for name in CLASSES))
    if stand_in:
        control.apply(machine, *(each.document for each in cdidefinitions.definitions()))
        control.wait("CDI's kinds", lambda: _applied(machine, profiles()))
    control.access(machine)
    machine.start_outside("storage", *python(__name__, str(machine.directory), *([_STAND_IN] if stand_in else [])))


def profiles() -> Sequence[Data]:
    """The profiles that an administrator writes for classes that CDI does not know."""
    return [_profile(name) for name in CLASSES]


def _class(name: str) -> Data:
    notes = {"storageclass.kubernetes.io/is-default-class": "true"} if name == CLASSES[0] else {}
    metadata = {"name": name, "annotations": notes}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata, "provisioner": PROVISIONER}


def _profile(name: str) -> Data:
    properties = [{"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem"}]
    metadata = {"name": name}
    spec = {"claimPropertySets": properties}
    return {"apiVersion": _PROFILES.api_version, "kind": _PROFILES.kind, "metadata": metadata, "spec": spec}


def _applied(machine: Machine, objects: Sequence[Data]) -> bool:
    """Apply objects whose kind may be too new to be served."""
    control.apply(machine, *objects)
    return True


class Storage:
    """The controllers."""

    def __init__(self, client: Client, directory: Path) -> None:
        self._machinery = Machinery()
        self._client, self._directory = client, directory
        self.program = ControllerManager(client, component="storage", instance="storage", machinery=self._machinery)
        informers = self.program.informers
        self._claims, self._volumes = informers.of(_CLAIMS), informers.of(_VOLUMES)
        self.program.add(Controller("claims", self._claims, self._claim, machinery=self._machinery))
        self.program.add(Controller("volumes", self._volumes, self._volume, machinery=self._machinery))

    async def _claim(self, key: Key) -> Outcome:
        """Give a claim that waits a directory."""
        claim = _read(self._claims.cache.get(key))
        if claim is None or claim["metadata"].get("deletionTimestamp") or claim["spec"].get("volumeName"):
            return DONE
        spec = claim["spec"]
        if spec.get("storageClassName") not in CLASSES or spec.get("volumeMode") == "Block":
            return DONE
        name = f"pvc-{claim['metadata']['uid']}"
        folder = self._directory / name
        folder.mkdir(exist_ok=True)
        # The guest's user writes here.
        folder.chmod(0o777)
        try:
            await self._client.create(_VOLUMES, _persistent_volume(name, claim))
        except AlreadyExists:
            return DONE
        return DONE

    async def _volume(self, key: Key) -> Outcome:
        """Remove the directory of a claim that is gone."""
        volume = _read(self._volumes.cache.get(key))
        if volume is None or volume.get("status", {}).get("phase") != "Released":
            return DONE
        await asyncio.to_thread(shutil.rmtree, self._directory / key.name, ignore_errors=True)
        await self._client.delete(_VOLUMES, key)
        return DONE


class StorageWithDisks(Storage):
    """The controllers, with those that stand in for CDI."""

    def __init__(self, client: Client, directory: Path) -> None:
        super().__init__(client, directory)
        informers = self.program.informers
        self._disks, self._sources = informers.of(_DISKS), informers.of(_SOURCES)
        of_disks = Controller("disks", self._disks, self._disk, machinery=self._machinery)
        of_disks.watch(self._claims, owners("cdi.kubevirt.io", "DataVolume"))
        self.program.add(of_disks)
        of_sources = Controller("sources", self._sources, self._source, machinery=self._machinery)
        of_sources.watch(self._claims, lambda _: self._sources.cache.keys())
        self.program.add(of_sources)

    async def _disk(self, key: Key) -> Outcome:
        """Make the claim of a DataVolume, and fill it once."""
        seen = self._disks.cache.get(key)
        disk = _read(seen)
        if seen is None or disk is None or seen.meta.deleting or disk.get("status", {}).get("phase") == "Succeeded":
            return DONE
        claim = _read(self._claims.cache.get(key))
        if claim is None:
            await self._make_claim(seen, disk)
            return again(_LOOK_SECONDS)
        if claim.get("status", {}).get("phase") != "Bound":
            await self._say(key, "PVCBound" if claim["spec"].get("volumeName") else "Pending", "N/A")
            return again(_LOOK_SECONDS)
        file = self._directory / claim["spec"]["volumeName"] / "disk.img"
        if "upload" in disk["spec"].get("source", {}) and not file.exists():
            await self._say(key, "UploadReady", "N/A")
            return again(_LOOK_SECONDS)
        # What was read may be older than the last answer, and a machine may have the disk by now.
        if not file.exists():
            await self._say(key, "ImportInProgress", "N/A")
            await asyncio.to_thread(self._filler(key, disk["spec"]), file, guest_size(claim))
        await self._say(key, "Succeeded", "100.0%")
        return DONE

    async def _source(self, key: Key) -> Outcome:
        """Say of a DataSource whether there is something to copy."""
        source = _read(self._sources.cache.get(key))
        if source is None:
            return DONE
        wanted = source["spec"]["source"].get("pvc", {})
        disk = _read(self._disks.cache.get(Key(wanted.get("namespace") or key.namespace, wanted.get("name", ""))))
        is_filled = disk is not None and disk.get("status", {}).get("phase") == "Succeeded"
        condition = {"type": "Ready", "status": "True" if is_filled else "False", "reason": "Ready" if is_filled else "NotFound"}
        if (source.get("status") or {}).get("conditions") != [condition]:
            await self._client.patch(_SOURCES, key, merge_patch({"status": {"conditions": [condition]}}))
        return DONE if is_filled else again(_LOOK_SECONDS)

    def _filler(self, key: Key, spec: Mapping[str, Any]) -> Callable[[Path, int], None]:
        """Return what writes the disk of a DataVolume."""
        source = spec.get("source") or self._referenced(key, spec["sourceRef"])
        if "http" in source:
            return lambda file, size: content.download(source["http"]["url"], file, size)
        if "pvc" in source:
            wanted = Key(source["pvc"].get("namespace") or key.namespace, source["pvc"]["name"])
            origin = _read(self._claims.cache.get(wanted))
            if origin is None or not origin["spec"].get("volumeName"):
                raise Transient(f"cannot copy the claim {wanted.namespace}/{wanted.name}", why="it has no volume yet")
            return lambda file, size: content.copy(self._directory / origin["spec"]["volumeName"] / "disk.img", file, size)
        return content.blank

    def _referenced(self, key: Key, ref: Mapping[str, Any]) -> Mapping[str, Any]:
        found = _read(self._sources.cache.get(Key(ref.get("namespace") or key.namespace, ref["name"])))
        if found is None:
            raise Transient(f"cannot read the DataSource {ref['name']}", why="it is not there")
        source: Mapping[str, Any] = found["spec"]["source"]
        return source

    async def _make_claim(self, seen: CachedObject, disk: Data) -> None:
        wanted = dict(disk["spec"].get("storage") or disk["spec"]["pvc"])
        size = quantity.whole(wanted["resources"]["requests"]["storage"])
        if "storage" in disk["spec"]:
            # A file system takes some of it.
            size = claimsizes.inflated(size, claimsizes.OVERHEAD)
        modes = wanted.get("accessModes") or await self._modes(wanted.get("storageClassName") or CLASSES[0])
        if not modes:
            why = f"no accessMode specified in StorageProfile {wanted.get('storageClassName')}"
            raise Transient(f"cannot make the claim {seen.key}", why=why)
        spec = {**wanted, "accessModes": modes, "resources": {"requests": {"storage": str(size)}}}
        # CDI gives the claim what is written on the DataVolume.
        given = disk["metadata"]
        metadata = {
            "name": seen.key.name,
            "namespace": seen.key.namespace,
            "labels": given.get("labels", {}),
            "annotations": given.get("annotations", {}),
        }
        body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
        try:
            await self._client.create(_CLAIMS, owned(body, reference(_DISKS, seen.meta)))
        except AlreadyExists:
            return

    async def _modes(self, storage_class: str) -> Sequence[str]:
        """The access modes of a class, as far as its profile says them."""
        profile = await self._client.find(_PROFILES, Key("", storage_class)) or {}
        sets = profile.get("spec", {}).get("claimPropertySets") or [{}]
        found: Sequence[str] = sets[0].get("accessModes") or ()
        return found

    async def _say(self, key: Key, phase: str, progress: str) -> None:
        is_done = phase == "Succeeded"
        conditions = [
            {"type": "Bound", "status": "False" if phase == "Pending" else "True"},
            {"type": "Running", "status": "True" if phase == "ImportInProgress" else "False"},
            {"type": "Ready", "status": "True" if is_done else "False"},
        ]
        status = {"phase": phase, "progress": progress, "claimName": key.name, "conditions": conditions}
        await self._client.patch(_DISKS, key, merge_patch({"status": status}), _STATUS)


def _persistent_volume(name: str, claim: Data) -> Data:
    metadata, spec = claim["metadata"], claim["spec"]
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [HOSTNAME]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        # The controller manager leaves the removal of what this names to us.
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER}},
        "spec": {
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "accessModes": spec["accessModes"],
            "storageClassName": spec["storageClassName"],
            "persistentVolumeReclaimPolicy": "Delete",
            "local": {"path": f"{_ON_NODE}/{name}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                **{field: metadata[field] for field in ("name", "namespace", "uid")},
            },
        },
    }


def guest_size(claim: Data) -> int:
    """Return the size of a claim's disk: what the file system leaves, in bytes."""
    return claimsizes.usable(quantity.whole(claim["spec"]["resources"]["requests"]["storage"]), claimsizes.OVERHEAD)


def _read(seen: CachedObject | None) -> Data | None:
    if seen is None:
        return None
    read: Data = orjson.loads(seen.raw)
    return read


async def _run(directory: Path, controllers: type[Storage]) -> None:
    access = kubeconfig.find({}, SystemClock(), explicit=directory / "kubeconfig")
    async with Client(Https(access)) as client:
        await controllers(client, directory / "volumes").program.run()


if __name__ == "__main__":
    asyncio.run(_run(Path(sys.argv[1]), StorageWithDisks if _STAND_IN in sys.argv[2:] else Storage))
