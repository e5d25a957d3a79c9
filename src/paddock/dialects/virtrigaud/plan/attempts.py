"""Sizes that a provider was asked for, until its answer says what became of them.

A request whose answer is lost may have been carried out or not. Its sizes stay on record, so that the machine is never taken for one that
has the sizes of its spec when it may have others: whatever may differ from the spec is requested again.
"""

from collections.abc import Iterable, Sequence

import msgspec

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudMachineStatus, VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.plan import marks, resizing
from paddock.dialects.virtrigaud.plan.resizing import MachineSizes

# A provider that answers so has certainly done nothing.
REFUSALS = frozenset({ErrorKind.INVALID_SPEC, ErrorKind.NOT_SUPPORTED, ErrorKind.CONFLICT, ErrorKind.QUOTA_EXCEEDED})
# One that answers so to a create has made no machine. A change of a machine may be half done.
REFUSALS_OF_CREATE = REFUSALS | {ErrorKind.NOT_FOUND, ErrorKind.UNAUTHORIZED, ErrorKind.RATE_LIMIT}
_MOST = 8


def of(status: VirtrigaudMachineStatus) -> tuple[MachineSizes, ...]:
    """The sizes on record, the latest last."""
    text = (status.provider or {}).get(marks.REQUESTED)
    try:
        return msgspec.json.decode(text, type=tuple[MachineSizes, ...]) if text else ()
    except msgspec.MsgspecError:
        return ()


def recorded(status: VirtrigaudMachineStatus, sizes: MachineSizes) -> VirtrigaudMachineStatus:
    """The status with the record of a request that is about to be made."""
    others = [each for each in of(status) if each != sizes]
    text = msgspec.json.encode([*others[1 - _MOST :], sizes]).decode()
    return msgspec.structs.replace(status, provider={**(status.provider or {}), marks.REQUESTED: text})


def forgotten(status: VirtrigaudMachineStatus) -> VirtrigaudMachineStatus:
    """The status without a record: every request is answered."""
    left = {name: value for name, value in (status.provider or {}).items() if name != marks.REQUESTED}
    return msgspec.structs.replace(status, provider=left or None)


def confirmed(status: VirtrigaudMachineStatus, sizes: MachineSizes) -> VirtrigaudMachineStatus:
    """The status with sizes that the provider has confirmed."""
    provider = dict(forgotten(status).provider or {})
    if sizes.disks is not None:
        provider[marks.DISKS] = resizing.disks_text(sizes.disks)
    resources = resizing.resources(sizes) or status.currentResources
    return msgspec.structs.replace(status, currentResources=resources, provider=provider or None)


def made(listed: Iterable[m.VMInfo], vm: VirtrigaudVirtualMachine, *, unanswered: bool) -> list[m.VMInfo]:
    """Return the machines of a provider's list that a create for an object may have made.

    Upstream's providers name no owners and take a machine by its name, so the name counts there, unless every create was refused.
    """
    owner = vm.metadata.uid or ""
    by_name = unanswered and vm.metadata.name
    return [each for each in listed if (each.provider_raw.get(m.OWNER_UID) == owner if _tells_owner(each) else each.name == by_name)]


def _tells_owner(machine: m.VMInfo) -> bool:
    return m.OWNER_UID in machine.provider_raw


def suspected(status: VirtrigaudMachineStatus, target: MachineSizes) -> MachineSizes:
    """Return the sizes that the machine has, or may have after requests without an answer. A size that may differ from the target does.

    Of several such sizes, the largest counts: a provider refuses to shrink a running machine, and Paddock would request nothing more.
    """
    known, attempts = resizing.confirmed(status), of(status)
    if not attempts:
        return known
    possible = [*([known] if known.cpu else []), *attempts]
    return MachineSizes(
        _other(target.cpu, [each.cpu for each in possible]),
        _other(target.memory_mib, [each.memory_mib for each in possible]),
        _disks(target.disks or {}, [each.disks for each in possible if each.disks is not None]),
    )


def _other(wanted: int, possible: Sequence[int]) -> int:
    return max((each for each in possible if each != wanted), default=wanted)


def _disks(desired: dict[str, int], possible: Sequence[dict[str, int]]) -> dict[str, int]:
    found = {}
    for name in {name: None for disks in possible for name in disks}:
        sizes = [disks.get(name, 0) for disks in possible]
        size = desired.get(name)
        if size is None:
            found[name] = max(sizes)
        elif min(sizes) == max(sizes) or 0 < min(sizes) < size:
            found[name] = min(sizes)
        # Else it may be missing or larger than desired. It is left out: the answer to the request for it says which.
    return found
