"""CDIConfig `config` and CDI `cdi`: always there, and saying what holds. Clients look for the address of uploads in the first."""

from collections.abc import Callable
from typing import Any

import msgspec

from paddock.client.client import Client
from paddock.client.errors import AlreadyExists
from paddock.client.target import Data, Key
from paddock.controllers.storage.targets import CDIS, CLASSES, CONFIGS
from paddock.controllers.storage.view import StorageView
from paddock.dialects.kubevirt.cdiconfig import CDIConfig, CDIConfigStatus, CDIStatus, FilesystemOverhead
from paddock.meta import ages
from paddock.meta.conditions import Condition, settled
from paddock.plan.storage import claimsizes
from paddock.runtime.controller import DONE, Outcome
from paddock.runtime.machinery import Machinery
from paddock.runtime.statuses import StatusWriter

CONFIG, CDI_NAME = Key("", "config"), Key("", "cdi")


class CdiConfigReconciler:
    """Reconciles CDIConfig and CDI. `address` tells where clients upload to, and the certificates to trust there."""

    def __init__(self, client: Client, world: StorageView, address: Callable[[], tuple[str, str]], machinery: Machinery) -> None:
        self._client = client
        self._world = world
        self._address = address
        self._clock = machinery.clock
        self._config_statuses = StatusWriter(client, CONFIGS, world.configs.expectations)
        self._cdi_statuses = StatusWriter(client, CDIS, world.cdis.expectations)

    async def reconcile_config(self, key: Key) -> Outcome:
        """The settings for all."""
        if key != CONFIG:
            return DONE
        seen = self._world.configs.cache.get(key)
        if seen is None:
            cdi = self._world.read(self._world.cdis, CDIS, CDI_NAME)
            spec = msgspec.to_builtins(cdi.spec.config) if cdi is not None and cdi.spec.config is not None else {}
            await self._create(CONFIGS, {"metadata": {"name": key.name}, "spec": spec})
            return DONE
        classes = [seen.meta.name for seen in self._world.classes.cache if seen.read(CLASSES).provisioner]
        await self._config_statuses.write(seen, config_status(seen.read(CONFIGS), self._address(), classes))
        return DONE

    async def reconcile_cdi(self, key: Key) -> Outcome:
        """There is nothing to install."""
        seen = self._world.cdis.cache.get(key)
        if seen is None:
            if key == CDI_NAME:
                await self._create(CDIS, {"metadata": {"name": key.name}, "spec": {}})
            return DONE
        wanted = (
            Condition(type="Available", status="True", reason="DeployCompleted", message="Deployment Completed"),
            Condition(type="Progressing", status="False"),
            Condition(type="Degraded", status="False"),
        )
        before = seen.read(CDIS).status or CDIStatus()
        conditions = settled(before.conditions, wanted, ages.timestamp(self._clock.seconds()))
        await self._cdi_statuses.write(seen, msgspec.structs.replace(before, phase="Deployed", conditions=conditions))
        return DONE

    async def _create(self, target: Any, body: Data) -> None:
        try:
            await self._client.create(target, target.read(msgspec.json.encode(body)))
        except AlreadyExists:
            return


def config_status(config: CDIConfig, address: tuple[str, str], classes: list[str]) -> CDIConfigStatus:
    """Return the status. The override of the address is left to clients, who look for it in the spec."""
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
