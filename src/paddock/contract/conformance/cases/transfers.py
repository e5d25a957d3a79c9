"""Cases about exports and imports of disks."""

import asyncio
import hashlib
import re
from pathlib import Path

import msgspec

from paddock.contract import messages as m
from paddock.contract import payloads
from paddock.contract.conformance.case import ConformanceCase
from paddock.contract.conformance.context import CaseMachine, ConformanceContext
from paddock.contract.errors import ErrorKind

_EXPORT = ("supports_disk_export",)
_BOTH = ("supports_disk_export", "supports_disk_import")
_SHA256 = re.compile("[0-9a-fA-F]{64}")
_CHUNK = 16 << 20
_UNSUPPORTED = (ErrorKind.NOT_SUPPORTED, ErrorKind.INVALID_SPEC)


def staging_url(context: ConformanceContext, file: str) -> str:
    """The URL of a file of this run."""
    if not context.settings.transfer_url:
        raise context.skip("no staging URL was named")
    return f"{context.settings.transfer_url.rstrip('/')}/{context.run}/{file}"


def staging_backend(context: ConformanceContext) -> str:
    """The backend of the staging URL."""
    return context.settings.transfer_url.partition("://")[0]


async def export_to(context: ConformanceContext, machine: CaseMachine, file: str) -> str:
    """Export the primary disk and return its checksum."""
    formats = context.capabilities.supported_export_formats
    context.check(formats, "supported_export_formats is empty")
    request = m.ExportDiskRequest(
        vm_id=machine.id,
        destination_url=staging_url(context, file),
        format="qcow2" if "qcow2" in formats else formats[0],
        backend_type=staging_backend(context),
        transfer_mode="relay",
    )
    response = await context.provider.export_disk(request)
    await context.finish("ExportDisk", response.task)
    if response.task is not None and not response.checksum:
        # The sum is known when the file is: a repeated call has it.
        response = await context.provider.export_disk(request)
        await context.finish("a repeated ExportDisk", response.task)
    return response.checksum


async def stopped(context: ConformanceContext) -> CaseMachine:
    """A machine that is off."""
    machine = await context.create()
    await context.power(machine, m.PowerOp.OFF)
    return machine


async def _export(context: ConformanceContext) -> None:
    staging_url(context, "")
    machine = await stopped(context)
    checksum = await export_to(context, machine, "disk.qcow2")
    context.check(_SHA256.fullmatch(checksum), f"the checksum of the export is {checksum!r}", "it must be a SHA-256 in hex")
    await _check_file(context, "disk.qcow2", checksum)
    await context.power(machine, m.PowerOp.ON)
    await context.expect_power(machine, "On")


async def _check_file(context: ConformanceContext, file: str, checksum: str) -> None:
    """Compare the checksum with the exported file, if the suite can see it."""
    if not context.settings.transfer_directory:
        return
    path = Path(context.settings.transfer_directory, context.run, file)
    context.check(path.is_file(), f"ExportDisk left no file {path}")
    digest = hashlib.sha256()
    with path.open("rb") as stored:
        while chunk := stored.read(_CHUNK):
            digest.update(chunk)
            await asyncio.sleep(0)
    context.check(
        digest.hexdigest() == checksum.lower(), "the checksum is not that of the stored file", f"the file has {digest.hexdigest()}"
    )


async def _export_unknown(context: ConformanceContext) -> None:
    machine, url = await stopped(context), staging_url(context, "none.qcow2")
    secret = {"accessKeyID": context.secret, "secretAccessKey": context.secret, "sessionToken": context.secret}
    plain = m.ExportDiskRequest(
        vm_id=machine.id, format="qcow2", destination_url=url, backend_type=staging_backend(context), credentials=secret
    )
    odd = f"none://{context.secret}@host/disk"
    for what, request, kinds in (
        ("a missing disk", msgspec.structs.replace(plain, disk_id=f"{context.run}-missing"), (ErrorKind.NOT_FOUND, ErrorKind.INVALID_SPEC)),
        ("an unknown format", msgspec.structs.replace(plain, format="no-such-format"), _UNSUPPORTED),
        ("an unknown backend", msgspec.structs.replace(plain, backend_type="no-such-backend", destination_url=odd), _UNSUPPORTED),
    ):
        await context.refused(f"an export with {what}", context.provider.export_disk(request), *kinds)


def _import(context: ConformanceContext, file: str, checksum: str, name: str) -> m.ImportDiskRequest:
    return m.ImportDiskRequest(
        source_url=staging_url(context, file),
        format="qcow2",
        target_name=name,
        verify_checksum=True,
        expected_checksum=checksum,
        backend_type=staging_backend(context),
        transfer_mode="relay",
        target_vm=m.ObjectIdentity(namespace="conformance", name=name),
    )


async def _transfer(context: ConformanceContext) -> None:
    staging_url(context, "")
    source = await stopped(context)
    size = (await context.disk(source)).virtual_size_bytes
    checksum = await export_to(context, source, "transfer.qcow2")
    name = context.name()
    response = await context.provider.import_disk(_import(context, "transfer.qcow2", checksum, f"{name}-disk"))
    context.check(response.disk_id or response.path, "ImportDisk answers without an id and without a path")
    await context.finish("ImportDisk", response.task)
    # The machine takes the disk, and takes it away when it is deleted.
    image = payloads.ImagePayload(path=response.path or response.disk_id, format="qcow2")
    machine = await context.create(context.request(name=name, image_json=payloads.encode(image)))
    imported = (await context.disk(machine)).virtual_size_bytes
    context.check(imported == size, f"the imported disk has {imported} bytes", f"the exported one had {size}")
    context.check(response.checksum.lower() in ("", checksum.lower()), "ImportDisk answers with another checksum than ExportDisk")


async def _wrong_checksum(context: ConformanceContext) -> None:
    staging_url(context, "")
    source = await stopped(context)
    checksum = await export_to(context, source, "damaged.qcow2")
    wrong = ("0" if checksum[:1] != "0" else "1") + checksum[1:]
    call = context.provider.import_disk(_import(context, "damaged.qcow2", wrong, f"{context.name()}-disk"))
    await context.refused("an import with a wrong checksum", call)


async def _missing(context: ConformanceContext) -> None:
    call = context.provider.import_disk(_import(context, "missing.qcow2", "0" * 64, f"{context.name()}-disk"))
    await context.refused("an import of a missing file", call)


CASES = (
    ConformanceCase(name="export", text="ExportDisk stores the disk with the SHA-256 that it answers with", run=_export, needs=_EXPORT),
    ConformanceCase(name="export-unknown", text="Unknown disks, formats and backends are refused", run=_export_unknown, needs=_EXPORT),
    ConformanceCase(name="import", text="An exported disk is imported, and a machine starts from it", run=_transfer, needs=_BOTH),
    ConformanceCase(name="import-checksum", text="An import with a wrong checksum is refused", run=_wrong_checksum, needs=_BOTH),
    ConformanceCase(name="import-missing", text="An import of a missing file is refused", run=_missing, needs=("supports_disk_import",)),
)
