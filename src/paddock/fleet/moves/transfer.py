"""One disk on its way: an export of the source, an upload of the target, and the checksum between the two."""

import asyncio
import base64
import hashlib
import secrets
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import NamedTuple, TypeVar

from paddock.base.errors import Transient
from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import texts
from paddock.fleet.machines.claims import CLAIMS, DATA_VOLUMES
from paddock.fleet.moves import objectcalls, ways
from paddock.fleet.moves.observed import EXPORTS
from paddock.fleet.moves.plan import disks, record
from paddock.fleet.moves.plan.disks import CarriedDisk
from paddock.fleet.moves.plan.record import MoveRecord
from paddock.fleet.moves.sides import MoveSide
from paddock.kubernetes.client.options import Selection, json_patch
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.targets import kind_target
from paddock.kubevirt import disklinks
from paddock.kubevirt.disklinks import DiskLink, LinkChannel, Unpacker

_SECRETS = kind_target("", "Secret")
_READY_SECONDS, _ANSWER_SECONDS = 600.0, 3600.0
_TTL = "24h"
_SMALL = 64 << 10
T = TypeVar("T")
_GZIP = 16 + zlib.MAX_WBITS
_UPLOADABLE = ("UploadReady", "Succeeded", "Failed")
# done and total, in bytes of the raw disk
Tell = Callable[[float, float], None]


class DiskNotCarried(Transient):
    """A disk did not arrive."""


class DiskSum(NamedTuple):
    """The length and the SHA-256 of a raw disk."""

    size: int
    digest: str

    def __str__(self) -> str:
        return f"{self.size}/sha256:{self.digest}"


class DiskCarrier:
    """Carries the disks of one move."""

    def __init__(self, source: MoveSide, target: MoveSide, moved: MoveRecord, channel: LinkChannel) -> None:
        self._source = source
        self._target = target
        self._moved = moved
        self._channel = channel

    async def carry(self, disk: CarriedDisk, storage_class: str, tell: Tell, *, verify: bool) -> DiskSum:
        """Carry a disk to a new volume of the target. Raises `DiskNotCarried` and the errors of links and clients."""
        await self.drop(disk.name)
        namespace, labels = self._target.namespace, {record.ID: self._moved.id}
        async with DiskExport(self._source, disk.name, self._moved.id) as link:
            length = await self._channel.length(link)
            wanted = disks.volume_for(disk, length or disk.size, namespace, labels, storage_class)
            made = await self._target.client.create(DATA_VOLUMES, wanted, namespace)
            await self._phase(disk.name, _UPLOADABLE)
            sums = RawSums(disk.size, tell)
            chunks = complete(disk.name, sums.packed(self._channel.receive(link), link), sums, length)
            async with ways.upload(self._target, disk.name) as upload:
                await self._channel.send(upload, chunks, None, _ANSWER_SECONDS)
        await self._phase(disk.name, ("Succeeded",))
        if verify:
            await self._verify(disk, sums.result, tell)
        await self._complete(made, sums.result)
        return sums.result

    async def _verify(self, disk: CarriedDisk, expected: DiskSum, tell: Tell) -> None:
        """Read the disk back. What lies behind the source's end has to be empty."""
        async with DiskExport(self._target, disk.name, self._moved.id) as link:
            sums = RawSums(disk.size, tell, limit=expected.size)
            async for _ in sums.packed(self._channel.receive(link), link):
                continue
        if sums.result != expected or not sums.rest_is_empty:
            await self.drop(disk.name)
            fix = "say the same command again; the source keeps its disk"
            raise DiskNotCarried(f"disk {disk.name} arrived damaged", why=f"it is {sums.result}, not {expected}", fix=fix)

    async def drop(self, name: str) -> None:
        """Delete what an earlier attempt has left, and wait until it is gone. Raises `DiskNotCarried` for what others made."""
        for target in (DATA_VOLUMES, CLAIMS):
            found = await self._target.client.find(target, Key(self._target.namespace, name))
            if found is not None and record.id_of(found) != self._moved.id:
                raise DiskNotCarried(f"{target.kind} {name} at the target is in the way", fix="delete it if nobody needs it")
        await objectcalls.drop_disk(self._target, name)

    async def _phase(self, name: str, wanted: tuple[str, ...]) -> None:
        """Wait for a phase of the disk at the target."""
        end = asyncio.get_running_loop().time() + _READY_SECONDS
        while True:
            found = await self._target.client.find(DATA_VOLUMES, Key(self._target.namespace, name))
            if found is None:
                raise DiskNotCarried(f"disk {name} is gone from the target", fix="say the same command again")
            phase = texts(found, "status", "phase")
            if phase == "Failed" or asyncio.get_running_loop().time() > end:
                why = next(
                    (texts(each, "message") for each in (found.get("status") or {}).get("conditions") or () if each.get("message")), ""
                )
                raise DiskNotCarried(
                    f"disk {name} at the target is {phase or 'not ready'}", why=why, fix=f"see `paddock why dv/{name}` there"
                )
            if phase in wanted:
                return
            await asyncio.sleep(objectcalls.POLL_SECONDS)

    async def _complete(self, made: Data, disk_sum: DiskSum) -> None:
        """Note the checksum on this DataVolume and no later one of its name."""
        name, uid = texts(made, "metadata", "name"), texts(made, "metadata", "uid")
        path = "/metadata/annotations/" + record.CHECKSUM.replace("/", "~1")
        operations = [{"op": "test", "path": "/metadata/uid", "value": uid}, {"op": "add", "path": path, "value": str(disk_sum)}]
        await self._target.client.patch(DATA_VOLUMES, Key(self._target.namespace, name), json_patch(operations))


class RawSums:
    """Sums a raw disk up while its bytes pass."""

    def __init__(self, total: int, tell: Tell, limit: int | None = None) -> None:
        self._total = total
        self._tell = tell
        self._limit = limit
        self._digest = hashlib.sha256()
        self._size = 0
        self.rest_is_empty = True

    @property
    def result(self) -> DiskSum:
        """The sum of what has passed."""
        return DiskSum(self._size if self._limit is None else min(self._size, self._limit), self._digest.hexdigest())

    async def packed(self, chunks: AsyncIterator[bytes], link: DiskLink) -> AsyncIterator[bytes]:
        """Yield the disk compressed, as the source compressed it if it did. The sum is of the raw disk."""
        unpacker, press = Unpacker(link.title), zlib.compressobj(level=1, wbits=_GZIP)
        async for piece in _slices(chunks):
            if link.packed:
                await _beside(len(piece), partial(self._all, unpacker, piece))
                yield piece
            else:
                self._take(piece)
                yield await _beside(len(piece), partial(press.compress, piece))
            self._tell(float(self._size), float(max(self._total, self._size)))
        if link.packed:
            unpacker.finish()
        else:
            yield press.flush()

    def _all(self, unpacker: Unpacker, chunk: bytes) -> None:
        for piece in unpacker.feed(chunk):
            self._take(piece)

    def _take(self, piece: bytes) -> None:
        left = len(piece) if self._limit is None else max(0, self._limit - self._size)
        self._digest.update(piece[:left])
        self.rest_is_empty = self.rest_is_empty and not any(piece[left:])
        self._size += len(piece)


async def complete(name: str, chunks: AsyncIterator[bytes], sums: RawSums, length: int | None) -> AsyncIterator[bytes]:
    """Yield a disk. Raises `DiskNotCarried` at its end if the source's disk has another length, so that no upload ends well.

    KubeVirt's export server ends a compressed disk that it could not read as if it were whole.
    """
    async for chunk in chunks:
        yield chunk
    if length is not None and sums.result.size != length:
        why = f"the source sent {sums.result.size} of its {length} bytes"
        raise DiskNotCarried(f"disk {name} did not arrive", why=why, fix="see the log of the export's pod at the source")


async def _slices(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield chunks in slices. A compressed chunk can expand a thousandfold, and the target gives up if nothing comes in the meantime."""
    async for chunk in chunks:
        for start in range(0, len(chunk), _SMALL):
            yield chunk[start : start + _SMALL]


async def _beside(size: int, work: Callable[[], T]) -> T:
    """Do work beside the loop if it is large enough for a thread."""
    return work() if size < _SMALL else await asyncio.to_thread(work)


class DiskExport:
    """An export of one claim, for as long as the block lasts."""

    def __init__(self, side: MoveSide, claim: str, id: str) -> None:
        self._side = side
        self._key = Key(side.namespace, f"move-{id}-{secrets.token_hex(4)}")
        self._claim = claim
        self._id = id
        self._way = AsyncExitStack()

    async def __aenter__(self) -> DiskLink:
        await close_exports(self._side, self._id)
        token, metadata = (
            secrets.token_urlsafe(24),
            {"name": self._key.name, "namespace": self._key.namespace, "labels": {record.ID: self._id}},
        )
        spec = {
            "source": {"apiGroup": "", "kind": "PersistentVolumeClaim", "name": self._claim},
            "tokenSecretRef": self._key.name,
            "ttlDuration": _TTL,
        }
        export = {"apiVersion": EXPORTS.api_version, "kind": EXPORTS.kind, "metadata": metadata, "spec": spec}
        made = await self._side.client.create(EXPORTS, export, self._key.namespace)
        owner = {"apiVersion": EXPORTS.api_version, "kind": EXPORTS.kind, "name": self._key.name, "uid": texts(made, "metadata", "uid")}
        data = {"token": base64.b64encode(token.encode()).decode()}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {**metadata, "ownerReferences": [owner]}, "data": data}
        await self._side.client.create(_SECRETS, secret, self._key.namespace)
        return await self._way.enter_async_context(ways.reachable(self._side, await self._ready(token)))

    async def _ready(self, token: str) -> DiskLink:
        end = asyncio.get_running_loop().time() + _READY_SECONDS
        while True:
            found = await self._side.client.get(EXPORTS, self._key)
            status = found.get("status") or {}
            links = status.get("links") or {}
            # Clients outside of a cluster do not know its inner names.
            link = links.get("external") or links.get("internal")
            if status.get("phase") == "Ready" and link:
                chosen = disklinks.export_link(link, self._claim, token)
                if chosen is None:
                    raise DiskNotCarried(f"the disk {self._claim} cannot be exported", why="it is offered in no raw format")
                return chosen
            if asyncio.get_running_loop().time() > end:
                why = next((str(each["message"]) for each in status.get("conditions") or () if each.get("message")), "")
                raise DiskNotCarried(f"the disk {self._claim} cannot be exported now", why=why, fix="say the same command again")
            await asyncio.sleep(objectcalls.POLL_SECONDS)

    async def __aexit__(self, *_: object) -> None:
        await self._way.aclose()
        await close_exports(self._side, self._id)


async def close_exports(side: MoveSide, id: str) -> None:
    """Delete the exports of a move, also those that a command left which was killed. Their tokens go with them."""
    labels = f"{record.ID}={id}"
    for found in (await side.client.list(EXPORTS, Selection(namespace=side.namespace, labels=labels))).items:
        await objectcalls.delete(side.client, EXPORTS, found)
