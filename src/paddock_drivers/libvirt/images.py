"""Preparing images: each content is stored once, as a volume that machines copy.

The name says the content, by a digest of its source. So images of one name in two namespaces of the manager stay apart, and a changed image
is another one. An image that lies in a pool already is checked, and used where it is.
"""

import asyncio
import hashlib
import re
from typing import Any

import msgspec

from paddock.base import duration, reasons
from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract import payloads, specs
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.specs import HTTPImageSource, ImagePrepare, LibvirtImageSource, PrepareStorage, VMImageSpec
from paddock.kubernetes.meta.wire import to_data
from paddock_drivers.kit import downloads, refusals
from paddock_drivers.kit.diskimages import DiskImages, WebImage
from paddock_drivers.kit.progress import DONE, TaskProgress, failed
from paddock_drivers.kit.transfers import StagingTransfers, TransferResult
from paddock_drivers.libvirt import imagesources, keeping, pools, records, streams, volumexml
from paddock_drivers.libvirt.connection import LibvirtConnection
from paddock_drivers.libvirt.records import VolumeNote
from paddock_drivers.libvirt.storageport import StoredDisk
from paddock_drivers.libvirt.volumexml import PoolView

PREPARED, CHECKED = "image", "image-check"
_TYPE = "libvirt"
_FORMATS = ("", "qcow2")
# The members of the credentials that a manager sends for a registry.
_LOGIN = {"username": "username", "password": "password", "docker_config": "dockerConfig"}
_LONGEST = 54


class VolumeImage(msgspec.Struct, frozen=True, kw_only=True):
    """The origin of an image: an address, or a path of the host."""

    block: str
    web: WebImage | None = None
    path: str = ""
    pool: str = ""
    checksum: tuple[str, str] | None = None
    seconds: float = 0.0


class ImageVolumes:
    def __init__(self, connection: LibvirtConnection, images: DiskImages) -> None:
        self._connection = connection
        self._images = images
        self._work = StagingTransfers()

    async def prepare(self, request: m.ImagePrepareRequest) -> m.ImagePrepareResponse:
        """Import an image, or answer with the one that is there."""
        spec = image_spec(request.image_json)
        source = with_login(read_source(spec), request.image_json)
        if source.path:
            return await self._in_place(source)
        wish = spec.prepare or ImagePrepare()
        hint = _storage(wish).libvirt
        named = request.storage_hint or source.pool or (hint.storagePool if hint is not None else None) or ""
        pool = await self._connection.run(pools.choose, named, "", self._connection.settings.pool)
        name = image_name(request.target_name, spec, source.block)
        volume = keeping.volume_name(pool, name)
        answer = m.ImagePrepareResponse(prepared_image_id=volume, prepared_image_path=keeping.path_of(pool, volume))
        note = await self._connection.run(keeping.noted, pool.name, volume)
        force = bool(wish.force)
        if note is not None and not force:
            return answer
        if note is None:
            _judge_missing(wish, volume)

        async def work() -> TransferResult:
            return await self._import(pool, volume, source, compress=_compressed(wish))

        task, result = self._work.begin(PREPARED, answer.prepared_image_path, volume, work)
        if result is not None and note is None:
            # Somebody has deleted it since.
            self._work.forget(answer.prepared_image_path)
            task, result = self._work.begin(PREPARED, answer.prepared_image_path, volume, work)
        result = result or await self._work.settled(task, self._connection.settings.create_seconds)
        if result is not None:
            return answer
        return msgspec.structs.replace(answer, task=m.TaskRef(id=f"{PREPARED}:{task}:{pool.name}/{volume}"))

    async def status(self, task: str) -> TaskProgress:
        """Judge a preparation: by the work of this process, and by the image when another process began it."""
        digest, _, place = task.partition(":")
        found = self._work.status(digest)
        if not found.error or not place:
            return found
        pool, _, volume = place.partition("/")
        try:
            note = await self._connection.run(keeping.noted, pool, volume)
        except ProviderError as error:
            return failed(error)
        return DONE if note is not None else found

    async def delete(self, request: x.ImageDeleteRequest) -> m.TaskResponse:
        """Delete a prepared image, or an imported disk that no machine has. Anything else stays."""
        if not request.image_id and not request.image_path:
            raise refusals.invalid("no image is named", fix="send the id or the path that ImagePrepare answered with")
        await self._connection.run(_delete, request.image_id, request.image_path, self._connection.settings.pool)
        if request.image_path:
            self._work.forget(request.image_path)
        return m.TaskResponse()

    async def _import(self, pool: PoolView, volume: str, source: VolumeImage, *, compress: bool) -> TransferResult:
        assert source.web is not None
        try:
            async with asyncio.timeout(source.seconds or None), self._images.fetched(source.web, pool.format, compress=compress) as disk:
                note = VolumeNote(purpose=records.IMAGE, request=volume, checksum=disk.digest, size=disk.size, format=disk.format)
                await self._connection.run(keeping.keep, pool.name, volume, disk, note)
                return TransferResult(disk.size, disk.size, disk.digest)
        except TimeoutError:
            what = f"the image was not there within {source.seconds:g} s"
            raise ProviderError(ErrorKind.TIMEOUT, what, fix="give source.http.timeout more time, or a nearer source") from None

    async def _in_place(self, source: VolumeImage) -> m.ImagePrepareResponse:
        """Look at a volume of the host; with a checksum as a task, because all of it is read."""
        stored = await self._connection.run(_looked_at, source.path, self._connection.settings.pool)
        answer = m.ImagePrepareResponse(prepared_image_id=stored.volume, prepared_image_path=stored.path)
        wanted = source.checksum
        if wanted is None:
            return answer

        async def work() -> TransferResult:
            digits = await self._connection.run(_digest, stored.path, wanted[0])
            if digits != wanted[1]:
                raise refusals.invalid("the image is damaged", why=f"its {wanted[0]} checksum is {digits}, not {wanted[1]}")
            return TransferResult(stored.capacity, stored.capacity, digits)

        task, result = self._work.begin(CHECKED, stored.path, ":".join(wanted), work)
        result = result or await self._work.settled(task, self._connection.settings.create_seconds)
        return answer if result is not None else msgspec.structs.replace(answer, task=m.TaskRef(id=f"{PREPARED}:{task}"))


def image_spec(text: str) -> VMImageSpec:
    """Return the spec of an image; raises InvalidSpec."""
    try:
        return msgspec.convert(payloads.decode_manifest(text), VMImageSpec)
    except msgspec.ValidationError as error:
        raise refusals.invalid("the image cannot be read", why=str(error)) from None


def read_source(spec: VMImageSpec) -> VolumeImage:
    """Return the source that counts here; raises NotSupported when all of it is at other hypervisors. Pure."""
    wish = spec.prepare or ImagePrepare()
    _check(wish)
    for name in specs.image_blocks(spec.source, _TYPE):
        block = getattr(spec.source, name)
        if isinstance(block, LibvirtImageSource) and (block.path or block.url):
            checksum = downloads.checksum(block.checksum, block.checksumType) if wish.validateChecksum else None
            pool = block.storagePool or ""
            if block.path:
                return VolumeImage(block=name, path=block.path, pool=pool, checksum=checksum)
            return VolumeImage(block=name, web=_web(block.url or "", {}, checksum), pool=pool)
        if isinstance(block, HTTPImageSource):
            return _http(name, block, wish)
        if name == "registry":
            if block.pullSecretRef is not None:
                raise refusals.not_supported("the image cannot be pulled with a Secret", why="the manager sends no credentials")
            return VolumeImage(block=name, web=WebImage(reference=block.image))
    given = specs.image_blocks(spec.source, _TYPE)
    fix = "give source.libvirt, source.http or source.registry"
    if not given:
        raise refusals.invalid("the image has no source", fix=fix)
    raise refusals.not_supported("the image cannot be imported", why=f"source.{given[0]} is at another hypervisor", fix=fix)


def with_login(source: VolumeImage, text: str) -> VolumeImage:
    """Return a source with the credentials that the manager sent beside the spec. Pure."""
    given = payloads.decode_manifest(text).get("credentials")
    if source.web is None or not isinstance(given, dict):
        return source
    login = {name: str(given.get(member) or "") for name, member in _LOGIN.items()}
    return msgspec.structs.replace(source, web=msgspec.structs.replace(source.web, **login))


def image_name(target: str, spec: VMImageSpec, block: str) -> str:
    """Return the name of a prepared image. Pure."""
    content = msgspec.json.encode(to_data(getattr(spec.source, block)), order="deterministic")
    plain = re.sub(r"[^a-z0-9.-]+", "-", target.lower()).strip("-.") or "image"
    return f"{plain[:_LONGEST].rstrip('-.')}-{hashlib.sha256(content).hexdigest()[:8]}"


def _http(name: str, block: HTTPImageSource, wish: ImagePrepare) -> VolumeImage:
    if block.authentication is not None:
        why = "the manager sends no credentials, and no driver takes client certificates"
        raise refusals.not_supported("the image cannot be fetched with source.http.authentication", why=why, fix="use a signed address")
    checksum = downloads.checksum(block.checksum, block.checksumType) if wish.validateChecksum else None
    seconds = duration.parse(block.timeout) / 1e9 if block.timeout else 0.0
    return VolumeImage(block=name, web=_web(block.url, block.headers or {}, checksum), seconds=seconds)


def _web(url: str, headers: dict[str, str], checksum: tuple[str, str] | None) -> WebImage:
    if not url.lower().startswith(("http://", "https://")):
        raise refusals.not_supported("the image cannot be fetched", why="its address is neither http nor https")
    return WebImage(url=url, headers=tuple(headers.items()), checksum=":".join(checksum) if checksum else "")


def _check(wish: ImagePrepare) -> None:
    """Refuse what would change the stored image in a way that is not possible here."""
    storage, better = _storage(wish), wish.optimization
    wanted = {"storage.preferredFormat": storage.preferredFormat, "optimization.convertFormat": better.convertFormat if better else ""}
    for name, kept in wanted.items():
        if (kept or "") not in _FORMATS:
            why = "images are kept as qcow2, and raw in pools of devices"
            raise refusals.not_supported(f"prepare.{name} cannot be {kept}", why=why)
    if better is not None and better.enableDeltaSync:
        raise refusals.not_supported("prepare.optimization.enableDeltaSync is not possible", why="images are fetched as a whole")
    space = storage.libvirt
    if space is not None and (space.allocationPolicy == "eager" or (space.preallocation or "off") != "off"):
        why = "an image is only read; its copies can have all of their space"
        raise refusals.not_supported("an image does not take space in advance", why=why, fix="use disks of the type thick")


def _storage(wish: ImagePrepare) -> PrepareStorage:
    return wish.storage or PrepareStorage()


def _compressed(wish: ImagePrepare) -> bool:
    return _storage(wish).compression or bool(wish.optimization and wish.optimization.enableCompression)


def _judge_missing(wish: ImagePrepare, volume: str) -> None:
    if wish.onMissing == "Fail":
        raise refusals.not_found(
            f"the image {volume} is not there", "prepare.onMissing is Fail; set it to Import", reason=reasons.TEMPLATE_MISSING
        )
    if wish.onMissing == "Wait":
        raise refusals.retry_later(f"the image {volume} is not there, and prepare.onMissing is Wait", 30.0)


def _looked_at(conn: Any, path: str, pool: str) -> StoredDisk:
    return imagesources.find(conn, payloads.ImagePayload(path=path), pool, "").stored


def _digest(conn: Any, path: str, algorithm: str) -> str:
    volume = pools.find(conn, path)
    if volume is None:
        raise refusals.not_found("the image is gone", reason=reasons.TEMPLATE_MISSING)
    return streams.digest(conn, volume, algorithm)


def _delete(conn: Any, id: str, path: str, first: str) -> None:
    volume = pools.find(conn, path) if path else pools.find_named(conn, id, first) or pools.find_named(conn, f"{id}.qcow2", first)
    if volume is None:
        return
    place = volume.storagePoolLookupByVolume()
    stored = volumexml.parse_volume(volume.XMLDesc(0), place.name())
    note = records.read(conn, place, stored.volume)
    users = pools.users(conn, stored.path)
    if users:
        raise refusals.conflict(f"volume {stored.volume} stays", why=f"machine {users[0]} has it")
    half_made = note is None and records.is_begun(place, stored.volume)
    if not half_made and (note is None or note.purpose not in (records.IMAGE, records.DISK)):
        raise refusals.conflict(f"volume {stored.volume} is neither a prepared image nor an imported disk, and stays")
    records.forget(place, stored.volume)
