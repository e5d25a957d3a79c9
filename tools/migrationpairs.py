"""docs/reference/migrations.md: between which drivers a VMMigration moves machines, over which storage, and why not.

The facts are here once. `tests/unit/drivers/test_migrationpairs.py` holds them against what the drivers report, and has VirtRigaud's
controllers refuse each pair that is refused here; that test moves machines between simulated drivers, and
`tests/reference/migrations/test_pairs.py` moves them between real ones.
"""

from collections.abc import Iterator
from typing import NamedTuple

from paddock.kubernetes.schema.generate import reference

STORAGES = ("pvc", "s3", "nfs")


class DriverStorages(NamedTuple):
    """The storage that a driver exports to and imports from, and the reasons for what it lacks."""

    name: str
    exports: tuple[str, ...]
    imports: tuple[str, ...]
    # by what is lacking: "export", or a kind of storage
    reasons: tuple[tuple[str, str], ...] = ()


DRIVERS = (
    DriverStorages(
        "fake",
        ("pvc",),
        ("pvc",),
        (
            ("s3", "its disks are in memory and its files in one directory"),
            ("nfs", "its disks are in memory and its files in one directory"),
        ),
    ),
    DriverStorages(
        "qemu",
        ("pvc", "s3"),
        ("pvc", "s3"),
        (("nfs", "the server that runs it mounts no NFS exports; `paddock provider serve --type qemu` elsewhere may"),),
    ),
    DriverStorages("libvirt", STORAGES, STORAGES),
    DriverStorages("vsphere", STORAGES, STORAGES),
    DriverStorages("proxmox", (), STORAGES, (("export", "the API of Proxmox VE hands out no disks"),)),
    DriverStorages("firecracker", STORAGES, STORAGES),
)
BY_NAME = {each.name: each for each in DRIVERS}


def refusal(source: str, target: str, storage: str) -> str:
    """Return why no machine moves from one driver to another over a storage; empty when it moves."""
    gives, takes = BY_NAME[source], BY_NAME[target]
    reasons = {each.name: dict(each.reasons) for each in (gives, takes)}
    if not gives.exports:
        return f"{source}: {reasons[source]['export']}"
    lacking = dict.fromkeys([*([source] if storage not in gives.exports else []), *([target] if storage not in takes.imports else [])])
    return "; ".join(f"{name}: {reasons[name][storage]}" for name in lacking)


def shared(source: str, target: str) -> tuple[str, ...]:
    """Return the storages over which machines move from one driver to another."""
    return tuple(each for each in STORAGES if not refusal(source, target, each))


def page() -> str:
    """Return the page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield from ("# Migrations between drivers", "", reference.HEADER, "")
    yield from (
        "A [VMMigration](virtrigaud/vmmigration.md) moves a machine from one Provider to another, which may be of the same type.",
        "The table has the kinds of `spec.storage` over which each pair can move machines. Storage of type `nfs` needs the export",
        "mounted beside both providers (`PROVIDER_NFS_MOUNTS`). The driver `fake` is for tests.",
        "",
    )
    names = [each.name for each in DRIVERS]
    yield f"| from, to | {' | '.join(names)} |"
    yield f"| --- |{' --- |' * len(names)}"
    for source in names:
        yield f"| {source} | {' | '.join(', '.join(shared(source, each)) or 'refused' for each in names)} |"
    yield from ("", "## What is refused", "")
    yield from (
        "The phase `Validating` refuses such a migration with the reason `UnsupportedByProvider`, before it touches the source or the",
        "storage. The message names the Providers and everything that they lack.",
        "",
        "| driver | refused | reason |",
        "| --- | --- | --- |",
    )
    for each in DRIVERS:
        for lacking, reason in each.reasons:
            what = "every migration away from it" if lacking == "export" else f"storage of type `{lacking}`"
            yield f"| {each.name} | {what} | {reason} |"
