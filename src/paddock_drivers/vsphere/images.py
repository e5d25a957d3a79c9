"""Preparing images: each content becomes one template, and machines are clones of it.

An appliance is imported by a lease, a disk is stored as files of a datastore and gets a machine around it. The name says the content by a
sum of its source, and so does the instance UUID: a call that is repeated finds the template, and images of one name in two namespaces stay
apart. What an import that was cut off has left is no template, and makes room for the next one.
"""

import hashlib
import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import msgspec
from pyVmomi import vim

from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract import payloads, specs
from paddock.contract.payloads import ImagePayload, PlacementPayload
from paddock.contract.specs import ImagePrepare, PrepareStorage, VMImageSpec, VSphereStorage
from paddock_drivers.kit import downloads, foreign, refusals, staging
from paddock_drivers.kit.downloads import DownloadOrder
from paddock_drivers.kit.progress import DONE, TaskProgress, failed
from paddock_drivers.kit.transfers import StagingTransfers, TransferResult
from paddock_drivers.vsphere import appliances, identifiers, marks, paths, templates
from paddock_drivers.vsphere.appliances import LocalAppliance
from paddock_drivers.vsphere.identifiers import VSphereGoal, VSphereTaskId
from paddock_drivers.vsphere.imports import IMAGE, ApplianceImport, ImageWish
from paddock_drivers.vsphere.paths import DatastorePath
from paddock_drivers.vsphere.placement import VSpherePlacement
from paddock_drivers.vsphere.session import VSphereSession
from paddock_drivers.vsphere.stores import DiskStore
from paddock_drivers.vsphere.target import VSphereTarget, mark_paths, reference
from paddock_drivers.vsphere.transfers import FOLDER, TransferSettings

_TYPE = "vsphere"
_NO_CREDENTIALS = "the manager sends no client certificates"
_OTHER_CREDENTIALS = "use basicAuth, bearer or headers"
_APPLIANCES = (".ova", ".ovf")
_FORMATS = {".qcow2": "qcow2", ".raw": "raw", ".img": "", ".vmdk": "vmdk", ".vhd": "vhd", ".vhdx": "vhdx", ".vdi": "vdi"}
_UNFIT = re.compile(r"[^a-z0-9.-]+")
_MARKS = ("name", "config.template", *mark_paths(marks.PURPOSE))


class VSphereImageOrigin(msgspec.Struct, frozen=True):
    """The place of an image's content."""

    order: DownloadOrder
    # of a disk; None: an appliance
    format: str | None


class VSphereImages:
    def __init__(
        self, session: VSphereSession, target: VSphereTarget, placement: VSpherePlacement, store: DiskStore, settings: TransferSettings
    ) -> None:
        self._session = session
        self._target = target
        self._placement = placement
        self._store = store
        self._settings = settings
        self._importing = ApplianceImport(session, target, store)
        self._work = StagingTransfers()

    async def prepare(self, request: m.ImagePrepareRequest) -> m.ImagePrepareResponse:
        """Make a template of an image, or answer with the one that is there."""
        spec = image_spec(request.image_json)
        block = specs.image_block(spec.source, _TYPE)
        own = spec.source.vsphere
        if block == _TYPE and own is not None and own.templateName and not own.ovaURL:
            image = ImagePayload(template_name=own.templateName)
            await self._session.run(lambda: templates.find(self._target.inventory, image))
            return m.ImagePrepareResponse(prepared_image_id=own.templateName)
        origin = image_origin(spec, self._settings.allowed)
        name = image_name(request.target_name, origin)
        wish = await self._session.run(lambda: self._wish(name, spec, request.storage_hint))
        if wish is None:
            return m.ImagePrepareResponse(prepared_image_id=name)
        made = wish

        async def work() -> TransferResult:
            with TemporaryDirectory(dir=self._settings.scratch, prefix="image-") as directory:
                await self._prepared(made, origin, Path(directory))
            return TransferResult(0, 0, "")

        key, result = self._work.begin(VSphereGoal.PREPARED, name, "", work)
        if result is not None:
            # It was prepared, and is gone since then.
            self._work.forget(name)
            key, _ = self._work.begin(VSphereGoal.PREPARED, name, "", work)
        task = VSphereTaskId(VSphereGoal.PREPARED, detail=key)
        return m.ImagePrepareResponse(prepared_image_id=name, task=m.TaskRef(id=str(task)))

    def status(self, task: VSphereTaskId) -> TaskProgress:
        """Return the progress of a preparation."""
        return self._work.status(task.detail)

    def _wish(self, name: str, spec: VMImageSpec, hint: str) -> ImageWish | None:
        """The template to make, and where; None when it is there."""
        chosen = identifiers.instance_uuid(f"image/{name}")
        found = self._target.find(chosen, ("config.template",))
        if found is not None and found.get("config.template"):
            return None
        asked = ((spec.prepare or ImagePrepare()).storage or PrepareStorage()).vsphere or VSphereStorage()
        place = self._placement.find(PlacementPayload(datastore=asked.datastore or hint, folder=asked.folder or ""))
        kind = asked.diskType or ("thin" if asked.thinProvisioned in (None, True) else "thick")
        return ImageWish(name=name, id=chosen, place=place, kind=kind)

    async def _prepared(self, wish: ImageWish, origin: VSphereImageOrigin, scratch: Path) -> None:
        if origin.format is None:
            appliance: LocalAppliance = await appliances.fetch(origin.order, scratch)
            await self._session.run(lambda: self._make_room(wish))
            await self._importing.carry_out(wish, appliance)
            return
        (scratch / "download").mkdir()
        packed, raw = await downloads.fetch(origin.order, scratch / "download"), scratch / "raw"
        with packed.open("rb") as file:
            chosen = origin.format or foreign.recognized(file.read(16))
        size = await foreign.unpack(packed, chosen, raw)
        await self._session.run(lambda: self._make_room(wish))
        context = await self._session.run(self._store.context)
        home = await self._session.run(lambda: self._importing.datastore(wish))
        path = DatastorePath(home, f"{FOLDER}/{wish.name}.vmdk")
        with raw.open("rb") as file:
            await self._store.write(path, context, staging.pieces(os.dup(file.fileno()), size), size)
        await self._session.run(lambda: self._importing.wrap(wish, path, size))

    def _make_room(self, wish: ImageWish) -> None:
        """Delete what an import that was cut off has left."""
        found = self._target.find(wish.id, _MARKS)
        if found is not None and not found.get("config.template"):
            self._importing.finish(found.ref.Destroy_Task())

    # --- deletion -----------------------------------------------------------------------------------------------------------------

    def delete(self, request: x.ImageDeleteRequest) -> m.TaskResponse:
        """Delete a template that was prepared, or an imported disk that no machine has. One that is gone is deleted. For threads."""
        if request.image_path and not request.image_id:
            return self._delete_disk(request.image_path)
        found = self._target.find(identifiers.instance_uuid(f"image/{request.image_id}"), _MARKS)
        if found is None:
            self._check_foreign(request.image_id)
            return m.TaskResponse()
        if found.marks.get(marks.PURPOSE) != IMAGE:
            raise refusals.conflict(f"{found.name} was not prepared by this driver", fix="delete it in vSphere")
        task = found.ref.Destroy_Task()
        if self._target.quick(task, f"image {found.name} cannot be deleted") is not None:
            return m.TaskResponse()
        return m.TaskResponse(task=m.TaskRef(id=str(VSphereTaskId(VSphereGoal.UNPREPARED, found.id, reference(task)))))

    def _check_foreign(self, name: str) -> None:
        """Raise Conflict for a template of this name that somebody else has made."""
        rows = self._target.inventory.every(vim.VirtualMachine, ("name",))
        if any(each.name == name for each in rows):
            raise refusals.conflict(f'"{name[:80]}" was not prepared by this driver', fix="delete it in vSphere")

    def _delete_disk(self, text: str) -> m.TaskResponse:
        path = paths.parse(text)
        if path.folder.path != FOLDER or not path.name.endswith(".vmdk"):
            raise refusals.conflict("the disk was not imported by this driver", fix="delete it in vSphere")
        devices = self._target.inventory.every(vim.VirtualMachine, ("config.hardware.device",))
        taken = {getattr(device.backing, "fileName", "") for row in devices for device in row.get("config.hardware.device", ())}
        if str(path) in taken:
            raise refusals.conflict("the disk is in use by a machine", fix="delete the machine")
        task = self._store.remove(path, self._store.context())
        if task is None or self._target.quick(task, "the disk cannot be deleted") is not None:
            return m.TaskResponse()
        return m.TaskResponse(task=m.TaskRef(id=str(VSphereTaskId(VSphereGoal.UNPREPARED, "", reference(task)))))

    def judge_deletion(self, task: VSphereTaskId) -> TaskProgress:
        """Return the end of a deletion that vSphere has forgotten."""
        if task.machine and self._target.find(task.machine, ("name",)) is not None:
            return failed("the image was not deleted; delete it again")
        return DONE


def image_spec(text: str) -> VMImageSpec:
    """Return the spec of an image; raises InvalidSpec."""
    try:
        return msgspec.convert(payloads.decode_manifest(text), VMImageSpec)
    except msgspec.ValidationError as error:
        raise refusals.invalid("the image cannot be read", why=str(error)) from None


def image_origin(spec: VMImageSpec, allowed: tuple[str, ...] = ()) -> VSphereImageOrigin:
    """Return where the content of an image is; raises InvalidSpec and NotSupported."""
    block = specs.image_block(spec.source, _TYPE)
    given = getattr(spec.source, block) if block is not None else None
    if given is None:
        raise refusals.invalid("the image has no source for vSphere", fix="give source.vsphere or source.http")
    url = getattr(given, "ovaURL", None) or getattr(given, "url", None)
    if block not in (_TYPE, "http") or not url:
        why = f"source.{block} has no address of an appliance or of a disk"
        raise refusals.not_supported("the image cannot be imported", why=why, fix="give source.vsphere.ovaURL or source.http")
    if getattr(given, "authentication", None) is not None:
        raise refusals.not_supported(
            "the image cannot be fetched with source.http.authentication", why=_NO_CREDENTIALS, fix=_OTHER_CREDENTIALS
        )
    path = urlsplit(url).path.lower()
    kind = None if path.endswith(_APPLIANCES) else next((each for end, each in _FORMATS.items() if path.endswith(end)), "")
    prepare = spec.prepare or ImagePrepare()
    checksum = downloads.checksum(given.checksum, given.checksumType) if prepare.validateChecksum else None
    headers = tuple((getattr(given, "headers", None) or {}).items())
    return VSphereImageOrigin(DownloadOrder(url=url, headers=headers, checksum=checksum, allowed=allowed), kind)


def image_name(target: str, origin: VSphereImageOrigin) -> str:
    """Return the name of the template: what the image is called, and a sum of where it comes from."""
    parts = (origin.order.url, *(origin.order.checksum or ()))
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]
    return f"{_UNFIT.sub('-', target.lower()).strip('-.')[:60] or IMAGE}-{digest}"
