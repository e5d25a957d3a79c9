"""Plays KubeVirt's and CDI's part: machines run, disks are filled and bound, Services get addresses. In good weather, at once."""

import asyncio
import random
from typing import Any

import orjson

from paddock.base import quantity
from paddock.base.jsondata import Data
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import AlreadyExists, ApiError, Conflict, NotFound
from paddock.kubernetes.client.options import DeletionOptions, WriteOptions, merge_patch
from paddock.kubernetes.client.target import Key, Target, plain
from paddock.kubernetes.meta.patch import merge_patch_between
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Controller, Outcome, owners
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubernetes.runtime.reference import owned, reference
from paddock.kubernetes.storage import claimsizes
from tests import virtualtime

MACHINES = plain("kubevirt.io", "v1", "virtualmachines", "VirtualMachine")
INSTANCES = plain("kubevirt.io", "v1", "virtualmachineinstances", "VirtualMachineInstance")
VOLUMES = plain("cdi.kubevirt.io", "v1beta1", "datavolumes", "DataVolume")
CLAIMS = plain("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
SERVICES = plain("", "v1", "services", "Service")
_STATUS = WriteOptions(subresource="status")
_SINCE = "2027-01-15T08:00:00Z"
_ADDRESS = "10.0.2.2"


class Surroundings:
    """The part of CDI, and of whoever gives addresses."""

    def __init__(self, client: Client) -> None:
        self.machinery = machinery = Machinery(clock=virtualtime.Clock(), chance=random.Random(1))
        self._client = client
        self.program = ControllerManager(client, component="player", instance="player", machinery=machinery)
        informers = self.program.informers
        self._volumes, self._claims, self._services = informers.of(VOLUMES), informers.of(CLAIMS), informers.of(SERVICES)
        of_volumes = Controller("volumes", self._volumes, self._volume, machinery=machinery)
        of_volumes.watch(self._claims, owners("cdi.kubevirt.io", "DataVolume"))
        self.program.add(of_volumes)
        self.program.add(Controller("claims", self._claims, self._claim, machinery=machinery))
        self.program.add(Controller("services", self._services, self._service, machinery=machinery))
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to play."""
        self._task = asyncio.create_task(self.program.run())

    async def stop(self) -> None:
        """End."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    # --- CDI --------------------------------------------------------------------------------------------------------------

    async def _volume(self, key: Key) -> Outcome:
        seen = self._volumes.cache.get(key)
        if seen is None or seen.meta.deleting:
            return DONE
        spec = orjson.loads(seen.raw)["spec"]
        wanted = spec.get("storage") or spec.get("pvc") or {}
        guest = size = quantity.whole(wanted["resources"]["requests"]["storage"])
        if "storage" in spec:
            # A file system takes some of it.
            size = claimsizes.inflated(guest, claimsizes.OVERHEAD)
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": str(size)}}}
        if "storageClassName" in wanted:
            claim["storageClassName"] = wanted["storageClassName"]
        # A disk that was made so large ends like one that grew to it.
        notes = claimsizes.guest_size_note(guest, size)
        await self._make(CLAIMS, seen, {"name": key.name, **({"annotations": notes} if notes else {})}, {"spec": claim})
        await self._say(VOLUMES, seen, {"phase": "Succeeded", "progress": "100.0%", "claimName": key.name})
        return DONE

    async def _claim(self, key: Key) -> Outcome:
        seen = self._claims.cache.get(key)
        if seen is None or seen.meta.deleting:
            return DONE
        requests = orjson.loads(seen.raw)["spec"]["resources"]["requests"]
        await self._say(CLAIMS, seen, {"phase": "Bound", "capacity": requests, "accessModes": ["ReadWriteOnce"]})
        return DONE

    # --- whoever gives addresses ------------------------------------------------------------------------------------------

    async def _service(self, key: Key) -> Outcome:
        seen = self._services.cache.get(key)
        if seen is not None and not seen.meta.deleting and orjson.loads(seen.raw)["spec"].get("type") == "LoadBalancer":
            await self._say(SERVICES, seen, {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}})
        return DONE

    # --- acting -----------------------------------------------------------------------------------------------------------

    async def _make(self, target: Target[Any], owner: CachedObject, metadata: Data, rest: Data) -> None:
        """An object of an owner; one of that name that is there is used."""
        source = MACHINES if target is not CLAIMS else VOLUMES
        meta = {**metadata, "namespace": owner.key.namespace}
        body = {"apiVersion": target.api_version, "kind": target.kind, "metadata": meta, **rest}
        if self.program.informers.of(target).cache.get(Key(owner.key.namespace, meta["name"])) is None:
            try:
                await self._client.create(target, owned(body, reference(source, owner.meta)))
            except AlreadyExists:
                return

    async def _say(self, target: Target[Any], seen: CachedObject, status: Data) -> None:
        before = orjson.loads(seen.raw).get("status") or {}
        change = merge_patch_between({name: before.get(name) for name in status}, status)
        if not change:
            return
        try:
            # Running machines have no part of their own for the status.
            await self._client.patch(target, seen.key, merge_patch({"status": change}), WriteOptions() if target is INSTANCES else _STATUS)
        except NotFound:
            return
        except ApiError as error:
            raise AssertionError(f"{target.qualified}: {error}") from error


class Player(Surroundings):
    """KubeVirt's part as well."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        informers = self.program.informers
        self._machines, self._instances = informers.of(MACHINES), informers.of(INSTANCES)
        of_machines = Controller("machines", self._machines, self._machine, machinery=self.machinery)
        of_machines.watch(self._instances, owners("kubevirt.io", "VirtualMachine"))
        of_machines.watch(self._volumes, owners("kubevirt.io", "VirtualMachine"))
        self.program.add(of_machines)

    async def _machine(self, key: Key) -> Outcome:
        seen = self._machines.cache.get(key)
        if seen is None:
            return DONE
        machine, instance = orjson.loads(seen.raw), self._instances.cache.get(key)
        if seen.meta.deleting:
            if instance is None:
                await self._client.patch(MACHINES, key, merge_patch({"metadata": {"finalizers": None}}))
            else:
                await self._remove(INSTANCES, instance)
            return DONE
        for template in machine["spec"].get("dataVolumeTemplates") or ():
            await self._make(VOLUMES, seen, template["metadata"], {"spec": template["spec"]})
        runs = machine["spec"].get("running") or machine["spec"].get("runStrategy") in ("Always", "RerunOnFailure")
        if runs and instance is None:
            template = machine["spec"]["template"]
            await self._make(INSTANCES, seen, {**template.get("metadata", {}), "name": key.name}, {"spec": template["spec"]})
        elif not runs and instance is not None:
            await self._remove(INSTANCES, instance)
        if instance is not None:
            await self._say(INSTANCES, instance, _instance_status(orjson.loads(instance.raw)))
        is_up = bool(runs and instance is not None and not instance.meta.deleting)
        ready = {"type": "Ready", "status": "True" if is_up else "False", "lastTransitionTime": _SINCE}
        status = {"printableStatus": "Running" if is_up else "Stopped", "conditions": [ready]}
        await self._say(MACHINES, seen, {**status, "ready": is_up, "created": instance is not None})
        return DONE

    async def _remove(self, target: Target[Any], seen: CachedObject) -> None:
        try:
            await self._client.delete(target, seen.key, DeletionOptions(uid=seen.meta.uid))
            await self._client.patch(target, seen.key, merge_patch({"metadata": {"finalizers": None}}))
        except (NotFound, Conflict):
            return


def _instance_status(instance: Data) -> Data:
    cards = instance["spec"]["domain"]["devices"].get("interfaces") or ()
    interfaces = [
        {
            "name": each["name"],
            "ipAddress": _ADDRESS,
            "ipAddresses": [_ADDRESS],
            **({"mac": each["macAddress"]} if "macAddress" in each else {}),
        }
        for each in cards
    ]
    return {"phase": "Running", "nodeName": "node", "interfaces": interfaces}
