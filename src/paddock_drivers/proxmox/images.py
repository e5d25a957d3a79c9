"""Preparing images: the cluster downloads a file into a storage that takes `import`, and machines copy it.

The file's name is a sum of where it comes from, so each content is downloaded once. The cluster checks the sum of the content itself.
"""

import asyncio
import hashlib

import msgspec

from paddock.base import reasons
from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract import payloads, specs
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.payloads import ImagePayload
from paddock.contract.specs import ImagePrepare, ImageSource, VMImageSpec
from paddock_drivers.kit import refusals
from paddock_drivers.proxmox import failures, placing
from paddock_drivers.proxmox.api import FormValue, path
from paddock_drivers.proxmox.cluster import ProxmoxCluster, ProxmoxResource
from paddock_drivers.proxmox.identifiers import ProxmoxTaskGoal, ProxmoxTaskId
from paddock_drivers.proxmox.upid import Upid

# The release from which on files can be uploaded for import.
_LEAST_RELEASE = (8, 4)
_FORMATS = ("qcow2", "raw", "vmdk")
_SUMS = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")
_OURS = (":import/paddock-image-", ":import/paddock-disk-")


class ProxmoxImageOrigin(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    format: str
    checksum: str = ""
    checksum_type: str = ""

    def __repr__(self) -> str:
        # An address may hold a password.
        return f"ProxmoxImageOrigin(format={self.format!r})"

    @property
    def file(self) -> str:
        """The name of the file in a storage."""
        digest = hashlib.sha256(f"{self.url}\0{self.checksum_type}\0{self.checksum}".encode()).hexdigest()[:16]
        return f"paddock-image-{digest}.{self.format}"


class ProxmoxImagePreparation:
    def __init__(self, cluster: ProxmoxCluster) -> None:
        self._cluster = cluster

    async def can_import(self) -> bool:
        """Return whether this release imports files over the API."""
        return await self._cluster.release() >= _LEAST_RELEASE

    async def prepare(self, request: m.ImagePrepareRequest) -> m.ImagePrepareResponse:
        """Download an image, or answer with the one that is there."""
        spec = image_spec(request.image_json)
        template = reference(spec.source)
        if template:
            return m.ImagePrepareResponse(prepared_image_id=template)
        own = spec.source.proxmox
        return await self._prepared(
            origin(spec), await self._node(own.node or "" if own else ""), request.storage_hint or (own.storage or "" if own else "")
        )

    async def _prepared(self, proxmox_image_origin: ProxmoxImageOrigin, node: str, named: str) -> m.ImagePrepareResponse:
        storage = await self.storage(node, named)
        volume = f"{storage}:import/{proxmox_image_origin.file}"
        if volume in await self._files(node, storage):
            return m.ImagePrepareResponse(prepared_image_path=volume)
        upid = await self._download(proxmox_image_origin, node, storage)
        task = ProxmoxTaskId(ProxmoxTaskGoal.PREPARED, upid, None, f"{node} {volume}")
        return m.ImagePrepareResponse(task=m.TaskRef(id=str(task)), prepared_image_path=volume)

    async def fetched(self, image: ImagePayload, node: str) -> str:
        """The volume of an image that a machine names by its address, downloaded if it is not there."""
        found = _origin(image.url, image.format, image.checksum, image.checksum_type)
        answer = await self._prepared(found, node, "")
        task = ProxmoxTaskId.parse(answer.task.id) if answer.task is not None else None
        if task is not None and task.upid is not None:
            await self._cluster.wait(task.upid)
        return answer.prepared_image_path

    async def is_there(self, detail: str) -> bool:
        """Return whether a downloaded image is in its storage; `detail` is that of its task."""
        node, _, volume = detail.partition(" ")
        return volume in await self._files(node, volume.partition(":")[0])

    async def check_there(self, node: str, volume: str) -> None:
        """Raise NotFound for an image that a storage does not have."""
        storage = volume.partition(":")[0]
        if volume not in await self._files(node, storage):
            raise refusals.not_found(
                f"the disk {volume[:96]} does not exist on node {node}",
                "prepare the image, or import the disk first",
                reason=reasons.VOLUME_MISSING,
            )

    async def delete(self, request: x.ImageDeleteRequest) -> m.TaskResponse:
        """Delete a prepared image, or an imported disk that no machine has taken. Anything else stays."""
        volume = request.image_path or request.image_id
        if not any(each in volume for each in _OURS) or ".." in volume:
            if ":" in volume:
                raise refusals.conflict(f"{volume[:64]!r} is neither a prepared image nor an imported disk, and stays")
            if volume:
                # A template, or an image that was never here.
                return m.TaskResponse()
            raise refusals.invalid("no image is named", fix="send the id or the path that ImagePrepare answered with")
        storage = volume.partition(":")[0]
        resources = await self._cluster.resources("storage")
        node = next((each.node for each in placing.storages(resources, placing.IMPORT) if each.storage == storage), "")
        if not node:
            if any(each.storage == storage for each in resources):
                raise refusals.retry_later(f"storage {storage} is not available now")
            return m.TaskResponse()
        if volume in await self._files(node, storage):
            try:
                with failures.mapped():
                    await self._cluster.finish(await self._cluster.api.delete(path("nodes", node, "storage", storage, "content", volume)))
            except ProviderError as error:
                if "does not exist" not in str(error):
                    raise
        return m.TaskResponse()

    # --- storages and files -----------------------------------------------------------------------------------------------------

    async def storage(self, node: str, named: str) -> str:
        """The storage for images and imported disks; raises NotSupported where there is none."""
        if not await self.can_import():
            least = ".".join(map(str, _LEAST_RELEASE))
            raise refusals.not_supported(
                "disks cannot be imported", why=f"Proxmox VE does it over its API from release {least} on", fix="use a template"
            )
        resources = await self._cluster.resources("storage")
        return placing.storage(resources, placing.IMPORT, node, named, self._cluster.settings.import_storage)

    async def _node(self, named: str) -> str:
        """A node that has such a storage, one that is shared before others."""
        resources = await self._cluster.resources()
        free = placing.nodes(resources, self._cluster.settings.nodes)
        if named:
            return placing.node(free, named, free)
        have = [each for each in placing.storages(resources, placing.IMPORT) if each.node in free]
        if not have:
            raise refusals.not_supported('no storage takes "import"', fix='add "import" to the content of a storage (Datacenter, Storage)')
        return max(have, key=lambda each: (each.shared, each.maxdisk - each.disk, each.node)).node

    async def node_for(self, storage: str) -> str:
        """A node that is up and has a storage; an empty name stands for any that takes imports."""
        if not storage:
            return await self._node("")
        resources = await self._cluster.resources()
        have: list[ProxmoxResource] = [each for each in placing.storages(resources, placing.IMPORT) if each.storage == storage]
        free = placing.nodes(resources, self._cluster.settings.nodes)
        return placing.node(free, "", {each.node for each in have})

    async def _files(self, node: str, storage: str) -> set[str]:
        listed = await self._cluster.api.get(path("nodes", node, "storage", storage, "content"), content=placing.IMPORT)
        return {str(each.get("volid")) for each in listed or ()}

    async def _download(self, proxmox_image_origin: ProxmoxImageOrigin, node: str, storage: str) -> Upid:
        form: dict[str, FormValue] = {"content": placing.IMPORT, "filename": proxmox_image_origin.file, "url": proxmox_image_origin.url}
        if proxmox_image_origin.checksum:
            form |= {"checksum": proxmox_image_origin.checksum, "checksum-algorithm": proxmox_image_origin.checksum_type}
        answer = await self._cluster.api.post(path("nodes", node, "storage", storage, "download-url"), form)
        upid = Upid.parse(answer)
        if upid is None:
            raise ProviderError(ErrorKind.INTERNAL, "Proxmox VE answers a download without a task")
        # A refusal of the address comes at once; then the caller learns it without polling.
        await asyncio.sleep(0)
        return upid


def image_spec(text: str) -> VMImageSpec:
    """Return the spec of an image; raises InvalidSpec."""
    try:
        return msgspec.convert(payloads.decode_manifest(text), VMImageSpec)
    except msgspec.ValidationError as error:
        raise refusals.invalid("the image cannot be read", why=str(error)) from None


def reference(source: ImageSource) -> str:
    """Return the template that an image names; empty for one that has to be downloaded."""
    own = source.proxmox
    if own is None:
        return ""
    return str(own.templateID) if own.templateID is not None else own.templateName or ""


def origin(spec: VMImageSpec) -> ProxmoxImageOrigin:
    """Return the file of an image; raises NotSupported for a source that the cluster cannot download."""
    http, libvirt, given = spec.source.http, spec.source.libvirt, spec.prepare or ImagePrepare()
    if http is not None:
        if http.headers or http.authentication is not None:
            raise refusals.not_supported(
                "the image cannot be downloaded",
                why="Proxmox VE sends no headers and no credentials",
                fix="offer it without, or use a template",
            )
        own = spec.source.proxmox
        found = _origin(http.url, own.format if own is not None else "", http.checksum or "", http.checksumType or "")
    elif libvirt is not None and (libvirt.url or "").startswith("http"):
        found = _origin(libvirt.url or "", libvirt.format, libvirt.checksum or "", libvirt.checksumType or "")
    else:
        blocks = specs.image_blocks(spec.source, "proxmox")
        why = f"source.{blocks[0]} cannot be downloaded by Proxmox VE" if blocks else "it has no source"
        raise refusals.not_supported("the image cannot be imported", why=why, fix="give source.http, or source.proxmox with a template")
    return found if given.validateChecksum else msgspec.structs.replace(found, checksum="", checksum_type="")


def _origin(url: str, format: str, checksum: str, checksum_type: str) -> ProxmoxImageOrigin:
    if not url.startswith(("http://", "https://")):
        raise refusals.not_supported("the image cannot be downloaded", why="its address is neither http nor https")
    ending = url.partition("?")[0].rpartition(".")[2].lower()
    chosen = format if format in _FORMATS else ending if ending in _FORMATS else "qcow2"
    if ending in ("gz", "xz", "zst", "bz2", "ova", "ovf", "vhd", "vhdx") or (format and format not in (*_FORMATS, "img", "template")):
        raise refusals.not_supported(
            "the image cannot be imported",
            why="Proxmox VE imports qcow2, raw and vmdk that are not compressed",
            fix="convert the image first",
        )
    kind = (checksum_type or "sha256").lower() if checksum else ""
    if kind and kind not in _SUMS:
        raise refusals.invalid(f"the checksum of the image has the type {kind[:16]!r}", fix=f"use one of {', '.join(_SUMS)}")
    return ProxmoxImageOrigin(url=url, format=chosen, checksum=checksum.lower(), checksum_type=kind)
