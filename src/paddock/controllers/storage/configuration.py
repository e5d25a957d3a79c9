"""CDIConfig `config` and CDI `cdi`: always there, and saying what holds. Clients look for the address of uploads in the first."""

from collections.abc import Callable
from typing import Any

import msgspec

from paddock.client.client import Client
from paddock.client.errors import AlreadyExists
from paddock.client.options import WriteOptions, merge_patch
from paddock.client.target import Data, Key
from paddock.controllers.storage.targets import CDIS, CLASSES, CONFIGS
from paddock.controllers.storage.view import StorageView
from paddock.dialects.kubevirt.cdiconfig import CDIConfig, CDIConfigStatus, CDIStatus, FilesystemOverhead
from paddock.meta import ages
from paddock.meta.conditions import Condition, settled
from paddock.plan.storage import claimsizes
from paddock.runtime.controller import DONE, Outcome
from paddock.runtime.machinery import Machinery

CONFIG, CDI_NAME = Key("", "config"), Key("", "cdi")


class CdiConfigReconciler:
    """Reconciles CDIConfig and CDI. `address` tells where clients upload to, and the certificates to trust there."""

    def __init__(self, client: Client, world: StorageView, address: Callable[[], tuple[str, str]], machinery: Machinery) -> None:
        self._client = client
        self._world = world
        self._address = address
        self._clock = machinery.clock

    async def reconcile_config(self, key: Key) -> Outcome:
        """The settings for all."""
        if key != CONFIG:
            return DONE
        found = self._world.read(self._world.configs, CONFIGS, key)
        if found is None:
            cdi = self._world.read(self._world.cdis, CDIS, CDI_NAME)
            spec = msgspec.to_builtins(cdi.spec.config) if cdi is not None and cdi.spec.config is not None else {}
            await self._create(CONFIGS, {"metadata": {"name": key.name}, "spec": spec})
            return DONE
        classes = [seen.meta.name for seen in self._world.classes.cache if seen.read(CLASSES).provisioner]
        status = config_status(found, self._address(), classes)
        if found.status != status:
            built: Data = msgspec.to_builtins(status)
            document = {name: built.get(name) for name in status.__struct_fields__}
            await self._client.patch(CONFIGS, key, merge_patch({"status": document}))
        return DONE

    async def reconcile_cdi(self, key: Key) -> Outcome:
        """There is nothing to install."""
        found = self._world.read(self._world.cdis, CDIS, key)
        if found is None:
            if key == CDI_NAME:
                await self._create(CDIS, {"metadata": {"name": key.name}, "spec": {}})
            return DONE
        wanted = (
            Condition(type="Available", status="True", reason="DeployCompleted", message="Deployment Completed"),
            Condition(type="Progressing", status="False"),
            Condition(type="Degraded", status="False"),
        )
        before = found.status or CDIStatus()
        conditions = settled(before.conditions, wanted, ages.timestamp(self._clock.seconds()))
        status = msgspec.structs.replace(before, phase="Deployed", conditions=conditions)
        if status != before:
            document = {"status": {"phase": status.phase, "conditions": msgspec.to_builtins(conditions)}}
            await self._client.patch(CDIS, key, merge_patch(document), WriteOptions(subresource="status"))
        return DONE

    async def _create(self, target: Any, body: Data) -> None:
        try:
            await self._client.create(target, target.read(msgspec.json.encode(body)))
        except AlreadyExists:
            return


def config_status(config: CDIConfig, address: tuple[str, str], classes: list[str]) -> CDIConfigStatus:
    """What holds. The override of the address is left to clients, who look for it in the spec."""
    spec = config.spec
    given = spec.filesystemOverhead
    overheads = {name: claimsizes.overhead_of(given, name) for name in sorted(classes)}
    return CDIConfigStatus(
        uploadProxyURL=spec.uploadProxyURLOverride or address[0] or None,
        uploadProxyCA=address[1] or None,
        importProxy=spec.importProxy,
        filesystemOverhead=FilesystemOverhead(global_=claimsizes.overhead_of(given, ""), storageClass=overheads or None),
        preallocation=bool(spec.preallocation),
    )
