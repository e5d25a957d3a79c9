"""CDIConfig `config` and CDI `cdi`: always there, and saying what holds. Clients look for the address of uploads in the first."""

from collections.abc import Callable
from typing import Any

import msgspec

from paddock.base.jsondata import Data
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import AlreadyExists
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta import ages
from paddock.kubernetes.meta.conditions import Condition, settled
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Outcome
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.kindreconciler import KindReconciler
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.statuses import StatusWriter
from paddock.kubernetes.storage import claimsizes
from paddock.kubevirt.controllers.storage.targets import CDIS, CLASSES, CONFIGS
from paddock.kubevirt.controllers.storage.view import StorageView
from paddock.kubevirt.kinds.cdiconfig import CDIConfig, CDIConfigStatus, CDIStatus, FilesystemOverhead

CONFIG, CDI_NAME = Key("", "config"), Key("", "cdi")


class CdiConfigReconciler(KindReconciler):
    """Reconciles CDIConfig. `address` tells where clients upload to, and the certificates to trust there."""

    def __init__(self, client: Client, view: StorageView, address: Callable[[], tuple[str, str]]) -> None:
        super().__init__(view.configs)
        self._client = client
        self._view = view
        self._address = address
        self._statuses = StatusWriter(client, CONFIGS, view.configs.expectations)

    async def missing(self, key: Key) -> Outcome:
        """Make the settings for all, as the CDI has them."""
        if key == CONFIG:
            cdi = self._view.read(self._view.cdis, CDIS, CDI_NAME)
            spec = msgspec.to_builtins(cdi.spec.config) if cdi is not None and cdi.spec.config is not None else {}
            await _create(self._client, CONFIGS, {"metadata": {"name": key.name}, "spec": spec})
        return DONE

    async def work(self, seen: CachedObject) -> Outcome:
        """Write the settings that hold."""
        if seen.key == CONFIG:
            classes = [each.meta.name for each in self._view.classes.cache if each.read(CLASSES).provisioner]
            await self._statuses.write(seen, config_status(seen.read(CONFIGS), self._address(), classes))
        return DONE


class CdiReconciler(KindReconciler):
    def __init__(self, client: Client, informer: Informer, machinery: Machinery) -> None:
        super().__init__(informer)
        self._client = client
        self._clock = machinery.clock
        self._statuses = StatusWriter(client, CDIS, informer.expectations)

    async def missing(self, key: Key) -> Outcome:
        if key == CDI_NAME:
            await _create(self._client, CDIS, {"metadata": {"name": key.name}, "spec": {}})
        return DONE

    async def work(self, seen: CachedObject) -> Outcome:
        """Report that it is deployed: there is nothing to install."""
        wanted = (
            Condition(type="Available", status="True", reason="DeployCompleted", message="Deployment Completed"),
            Condition(type="Progressing", status="False"),
            Condition(type="Degraded", status="False"),
        )
        before = seen.read(CDIS).status or CDIStatus()
        conditions = settled(before.conditions, wanted, ages.timestamp(self._clock.seconds()))
        await self._statuses.write(seen, msgspec.structs.replace(before, phase="Deployed", conditions=conditions))
        return DONE


async def _create(client: Client, target: Any, body: Data) -> None:
    try:
        await client.create(target, target.read(msgspec.json.encode(body)))
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
