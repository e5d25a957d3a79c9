"""Templates made of what is on this host: appliances, uploaded to the files of a lease, and disks, which get a machine around them."""

import time
from typing import Any

import msgspec
from pyVmomi import vim

from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.kit import refusals
from paddock_drivers.vsphere import failures, files, marks
from paddock_drivers.vsphere.appliances import LocalAppliance
from paddock_drivers.vsphere.leases import LeaseHolder
from paddock_drivers.vsphere.paths import DatastorePath
from paddock_drivers.vsphere.placement import VSpherePlace
from paddock_drivers.vsphere.session import VSphereSession
from paddock_drivers.vsphere.stores import DiskStore
from paddock_drivers.vsphere.target import VSphereTarget

IMAGE = "image"
_GUEST = "otherLinux64Guest"
_PROVISIONING = {"thin": "thin", "thick": "thick", "eagerzeroedthick": "eagerZeroedThick"}
_LONGEST_SECONDS, _PAUSE = 600.0, 0.2


class ImageWish(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    id: str
    place: VSpherePlace
    # thin, thick or eagerzeroedthick
    kind: str = "thin"


class ApplianceImport:
    def __init__(self, session: VSphereSession, target: VSphereTarget, store: DiskStore) -> None:
        self._session = session
        self._target = target
        self._store = store

    async def carry_out(self, wish: ImageWish, appliance: LocalAppliance) -> None:
        """Import an appliance: vSphere says by its descriptor which files it wants, and gives a lease to put them."""
        items, lease = await self._session.run(lambda: self._begun(wish, appliance))
        server = await self._session.run(self._store.server)
        holder = LeaseHolder(self._session, lease)
        total = sum(each.size for each in appliance.files.values())
        done = 0
        async with holder as offered:
            places = {each.import_key: each for each in offered}
            for item in items:
                found, place = appliance.files.get(item.path), places.get(item.deviceId)
                if found is None or place is None:
                    raise refusals.invalid("the appliance cannot be imported", why="vSphere asks for a file that it does not have")
                to, target = server.at(place.url)
                method = "PUT" if item.create else "POST"
                await files.write(to, target, found.chunks(), found.size, "a file of the appliance", method=method)
                done += found.size
                holder.progress(done, total)
            entity = await self._session.run(lambda: holder.entity)
        await self._session.run(entity.MarkAsTemplate)

    def _begun(self, wish: ImageWish, appliance: LocalAppliance) -> tuple[list[Any], Any]:
        manager = self._target.connection.content.ovfManager
        store = self._datastore(wish)
        order = vim.OvfManager.CreateImportSpecParams(
            locale="",
            deploymentOption="",
            entityName=wish.name,
            diskProvisioning=_PROVISIONING.get(wish.kind, "thin"),
            networkMapping=self._networks(wish, appliance),
        )
        found = manager.CreateImportSpec(appliance.descriptor.text, wish.place.pool, store, order)
        if found.error or found.importSpec is None:
            why = "; ".join(str(each.msg or type(each).__name__) for each in found.error or ())[:300]
            raise ProviderError(ErrorKind.INVALID_SPEC, "vSphere cannot import the appliance", why=why)
        config = found.importSpec.configSpec
        config.instanceUuid = wish.id
        config.extraConfig = [*(config.extraConfig or ()), *marks.written({marks.PURPOSE: IMAGE})]
        return list(found.fileItem or ()), wish.place.pool.ImportVApp(found.importSpec, wish.place.folder, wish.place.host)

    def _networks(self, wish: ImageWish, appliance: LocalAppliance) -> list[Any]:
        """Each network of the appliance is the default one: machines that are made from the template get networks of their own."""
        if not appliance.descriptor.networks:
            return []
        inventory, default = self._target.inventory, self._target.settings.defaults.network
        root = inventory.datacenter().ref
        if default:
            chosen = inventory.named(vim.Network, default, root).ref
        else:
            rows = sorted(inventory.every(vim.Network, ("name",), root), key=lambda each: each.name)
            chosen = rows[0].ref if rows else None
        if chosen is None:
            raise refusals.conflict("the appliance cannot be imported", why="the account sees no network", fix="name a default network")
        return [vim.OvfManager.NetworkMapping(name=name, network=chosen) for name in dict.fromkeys(appliance.descriptor.networks)]

    # --- disks --------------------------------------------------------------------------------------------------------------------

    def _datastore(self, wish: ImageWish) -> Any:
        if wish.place.datastore is not None:
            return wish.place.datastore
        rows = self._target.inventory.every(vim.Datastore, ("name", "summary.freeSpace", "summary.accessible"))
        usable = [each for each in rows if each.get("summary.accessible")]
        if not usable:
            raise refusals.conflict("the image cannot be stored", why="the account sees no datastore that is accessible")
        return min(usable, key=lambda each: (-each.get("summary.freeSpace", 0), each.name)).ref

    def datastore(self, wish: ImageWish) -> str:
        """Return the name of the datastore for a template. For threads."""
        row = self._target.inventory.find(self._datastore(wish), ("name",))
        if row is None:
            raise refusals.retry_later("the datastore is gone")
        return row.name

    def wrap(self, wish: ImageWish, path: DatastorePath, size: int) -> None:
        """Make a template around a disk. For threads."""
        device = vim.vm.device
        change, operation = device.VirtualDeviceSpec, "add"
        controller = device.ParaVirtualSCSIController(key=-10, busNumber=0, sharedBus="noSharing")
        backing = device.VirtualDisk.FlatVer2BackingInfo(diskMode="persistent", fileName=str(path))
        disk = device.VirtualDisk(key=-11, controllerKey=-10, unitNumber=0, backing=backing, capacityInKB=size // 1024)
        config = vim.vm.ConfigSpec(
            name=wish.name,
            instanceUuid=wish.id,
            guestId=_GUEST,
            numCPUs=1,
            memoryMB=512,
            files=vim.vm.FileInfo(vmPathName=f"[{path.datastore}]"),
            extraConfig=marks.written({marks.PURPOSE: IMAGE}),
            deviceChange=[change(operation=operation, device=each) for each in (controller, disk)],
        )
        made = self.finish(wish.place.folder.CreateVM_Task(config, wish.place.pool, wish.place.host))
        made.MarkAsTemplate()

    def finish(self, task: Any) -> Any:
        """Wait for a task of a transfer, and return its result. For threads."""
        end = time.monotonic() + _LONGEST_SECONDS
        while True:
            state, info = self._target.state(task)
            if state == "error":
                raise failures.of(info.error, "the image cannot be prepared")
            if state not in ("queued", "running"):
                return info.result if info is not None else None
            if time.monotonic() > end:
                raise refusals.retry_later("vSphere does not end the task of the image")
            time.sleep(_PAUSE)
