"""What the target can do: KubeVirt's and CDI's kinds that it serves, its configuration, its classes of storage."""

import asyncio
import contextlib
from typing import Any

from paddock.contract import extensionmessages as x
from paddock.contract import features
from paddock.contract import messages as m
from paddock.kubernetes.client.errors import Forbidden, NotFound
from paddock.kubernetes.client.options import EVERYTHING, Selection
from paddock.kubernetes.client.target import Target
from paddock.kubernetes.core.storageclass import default_class
from paddock_drivers.kit import conversion
from paddock_drivers.kubevirt import disks, targets
from paddock_drivers.kubevirt.cluster import TargetCluster
from paddock_drivers.kubevirt.commands import GuestCommandRunner
from paddock_drivers.kubevirt.snapshots import keeps_memory

_DISK_TYPES = ("thin", "thick")
_QUEUES = f"{features.NETWORK_DRIVER}.queues"
_NETWORK_TYPES = ("pod", "bridge", "vlan")


class TargetCapabilities:
    """Finds out what the target can do."""

    def __init__(self, cluster: TargetCluster, commands: GuestCommandRunner) -> None:
        self._cluster = cluster
        self._commands = commands

    async def validate(self) -> m.ValidateResponse:
        """Say whether the target can be reached, and serves machines to the driver's account."""
        if not await self._serves("kubevirt.io/v1", targets.MACHINES.plural):
            return m.ValidateResponse(ok=False, message="the target serves no virtualmachines.kubevirt.io; install KubeVirt")
        # One machine is enough to see that the account may read them; a health check comes often.
        await self._cluster.client.page(targets.MACHINES, Selection(namespace=self._cluster.namespace), limit=1)
        return m.ValidateResponse(ok=True)

    async def features(self) -> x.GetFeaturesResponse:
        """Return what can be done here beyond upstream's contract. What a class says is obeyed, or named as a limitation."""
        found = [features.CLASS, features.DISKS, features.NETWORK_QOS, features.NETWORK_MTU, _QUEUES, features.CLONE_SNAPSHOT]
        if await self._imports():
            found += [features.IMAGE_DELETE, features.TRANSFER_DELETE]
        if await self._serves("networking.k8s.io/v1", targets.POLICIES.plural):
            found.append(features.NETWORK_SECURITY)
        with contextlib.suppress(NotFound, Forbidden):
            if await self._commands.is_there():
                found.append(features.EXEC)
        return x.GetFeaturesResponse(features=tuple(found))

    async def find(self) -> m.GetCapabilitiesResponse:
        """Return what can be done here."""
        online, grows, snapshots, imports = await asyncio.gather(self._online(), self._grows(), self._snapshots(), self._imports())
        exports = await self._serves(targets.EXPORTS.api_version, targets.EXPORTS.plural)
        backends = self._cluster.settings.staging.backends
        return m.GetCapabilitiesResponse(
            supports_reconfigure_online=online,
            supports_disk_expansion_online=grows,
            supports_snapshots=snapshots,
            supports_memory_snapshots=snapshots and await keeps_memory(self._cluster),
            supports_linked_clones=False,
            supports_image_import=imports,
            supported_disk_types=_DISK_TYPES,
            supported_network_types=_NETWORK_TYPES,
            supports_disk_export=exports,
            supported_export_formats=conversion.formats() if exports else (),
            supports_export_compression=exports and conversion.can_compress(),
            supported_export_backends=backends if exports else (),
            supports_disk_import=imports,
            supported_import_formats=disks.IMPORT_FORMATS if imports else (),
            supported_import_backends=backends if imports else (),
            supported_transfer_modes=("relay",) if imports or exports else (),
        )

    async def _online(self) -> bool:
        """Changes reach running machines unless the installation says that they wait for a restart."""
        try:
            found = (await self._cluster.client.list(targets.INSTALLATIONS)).items
        except (NotFound, Forbidden):
            # What nobody may read nobody should promise.
            return False
        given = [each.spec.configuration for each in found if each.spec.configuration is not None]
        return all(each.vmRolloutStrategy != "Stage" for each in given)

    async def _grows(self) -> bool:
        found = default_class(await self._every(targets.STORAGE_CLASSES))
        return found is not None and bool(found.allowVolumeExpansion)

    async def _snapshots(self) -> bool:
        """Snapshots need the kind, and a class of volumes that can have them."""
        if not await self._serves(targets.SNAPSHOTS.api_version, targets.SNAPSHOTS.plural):
            return False
        return bool(await self._every(targets.SNAPSHOT_CLASSES))

    async def _imports(self) -> bool:
        return await self._serves(targets.DATA_VOLUMES.api_version, targets.DATA_VOLUMES.plural)

    async def _every(self, target: Target[Any]) -> list[Any]:
        try:
            return (await self._cluster.client.list(target, EVERYTHING)).items
        except (NotFound, Forbidden):
            return []

    async def _serves(self, group_version: str, plural: str) -> bool:
        """Return whether a kind is served."""
        try:
            found = await self._cluster.resources(group_version)
        except NotFound:
            return False
        return plural in found
