"""Appliances of an address, as files of this host: downloaded, checked, and read, with the bytes of each file where they lie."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import msgspec

from paddock.contract.errors import ProviderError
from paddock_drivers.kit import downloads, refusals, staging
from paddock_drivers.kit.downloads import DownloadOrder
from paddock_drivers.vsphere import ovf
from paddock_drivers.vsphere.ovf import OvfDescriptor

_OVA = re.compile(r"\.ova\Z", re.IGNORECASE)
_DESCRIPTOR, _MANIFEST = ".ovf", ".mf"
_MISSING = "NotFound"


class ApplianceFile(msgspec.Struct, frozen=True):
    """The bytes of a file, a part of one on this host."""

    path: Path
    offset: int
    size: int

    async def chunks(self) -> AsyncIterator[bytes]:
        with self.path.open("rb") as file:
            file.seek(self.offset)
            left = self.size
            while left > 0 and (chunk := file.read(min(left, staging.CHUNK))):
                left -= len(chunk)
                yield chunk


class LocalAppliance(msgspec.Struct, frozen=True):
    """A descriptor and its files."""

    descriptor: OvfDescriptor
    files: dict[str, ApplianceFile]


async def fetch(order: DownloadOrder, directory: Path) -> LocalAppliance:
    """Download an appliance and check it by its manifest; raises `ProviderError`."""
    if _OVA.search(urlsplit(order.url).path):
        return await _archive(order, directory)
    return await _loose(order, directory)


async def _archive(order: DownloadOrder, directory: Path) -> LocalAppliance:
    whole = directory / "archive"
    whole.mkdir()
    found = ovf.archive(await downloads.fetch(order, whole))
    text = found.text(found.descriptor)
    descriptor = ovf.read(text)
    files = {each.name: ApplianceFile(found.path, each.offset, each.size) for each in found.members.values()}
    if found.manifest:
        await _check(ovf.manifest(found.text(found.manifest)), files)
    return _complete(descriptor, files)


async def _loose(order: DownloadOrder, directory: Path) -> LocalAppliance:
    """A descriptor with files beside it. The checksum of the order is that of the descriptor, which is worth as much as its manifest."""
    name = ovf.file_name(urlsplit(order.url).path.rpartition("/")[2] or "descriptor.ovf")
    main = await _one(msgspec.structs.replace(order, most=ovf.MOST_TEXT), directory / "descriptor")
    descriptor = ovf.read(main.read_bytes())
    files = {name: ApplianceFile(main, 0, main.stat().st_size)}
    for number, each in enumerate(descriptor.files):
        part = msgspec.structs.replace(order, url=urljoin(order.url, each.name), checksum=None)
        path = await _one(part, directory / f"file-{number}")
        files[each.name] = ApplianceFile(path, 0, path.stat().st_size)
    beside = re.sub(f"{re.escape(_DESCRIPTOR)}$", _MANIFEST, name, flags=re.IGNORECASE)
    try:
        sums = msgspec.structs.replace(order, url=urljoin(order.url, beside), checksum=None, most=ovf.MOST_TEXT, attempts=1)
        await _check(ovf.manifest((await _one(sums, directory / "manifest")).read_bytes()), files)
    except ProviderError as error:
        # A manifest may be missing; one that is wrong is an error.
        if getattr(error.__cause__, "code", "") != _MISSING:
            raise
    return _complete(descriptor, files)


async def _one(order: DownloadOrder, directory: Path) -> Path:
    directory.mkdir()
    return await downloads.fetch(order, directory)


async def _check(sums: dict[str, tuple[str, str]], files: dict[str, ApplianceFile]) -> None:
    """Compare files with a manifest, which has to name files that are there."""
    for name, (kind, digits) in sums.items():
        found = files.get(name)
        if found is None:
            raise refusals.invalid("the appliance is damaged", why="its manifest names a file that it does not have")
        if await downloads.digest(found.path, kind, found.offset, found.size) != digits:
            raise refusals.invalid("the appliance is damaged", why=f"the {kind.upper()} of a file is not that of its manifest")


def _complete(descriptor: OvfDescriptor, files: dict[str, ApplianceFile]) -> LocalAppliance:
    for each in descriptor.files:
        found = files.get(each.name)
        if found is None:
            raise refusals.invalid("the appliance is damaged", why="it lacks a file that its descriptor names")
        if each.size and each.size != found.size:
            raise refusals.invalid("the appliance is damaged", why="a file has another size than its descriptor says")
    return LocalAppliance(descriptor, {each.name: files[each.name] for each in descriptor.files})
