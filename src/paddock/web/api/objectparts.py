"""The objects of a machine, their conditions, and the words that sum them up. Pure."""

from collections.abc import Iterator, Mapping

from paddock.base.jsondata import Data
from paddock.fleet.diagnosis import verdict
from paddock.fleet.diagnosis.scene import at, entries, holds, texts
from paddock.fleet.kinds import VM, VMI
from paddock.fleet.machines import parts
from paddock.fleet.machines.finding import MachineView
from paddock.kubernetes.client.target import Target
from paddock.kubernetes.meta.manifests import write
from paddock.web.answers.machine import WebConditionPart, WebObjectPart
from paddock.web.live import kindtable

# Types whose True means trouble.
_TROUBLES = frozenset(
    (
        *("Failure", "Paused", "RestartRequired", "ManualRecoveryRequired", "Outdated", "EvacuationRequested", "MigrationRequired"),
        *("Deleting", "Reconfiguring", "ConnectionFailed", "Degraded", "Stalled", "SoftwareEmulation"),
    )
)
# Types that are neither good nor bad: they say what is possible.
_ABILITIES = frozenset(("LiveMigratable", "StorageLiveMigratable", "HotVCPUChange", "HotMemoryChange", "SimulatedGuest"))
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
Named = Mapping[str, Data]


def objects(machine: MachineView, claims: Named, volumes: Named) -> Iterator[WebObjectPart]:
    """Yield the object that a person wrote, then what was made of it."""
    yield object_part(machine.kind.target, machine.data, is_written=True)
    if machine.kind.front and machine.vm is not None:
        yield object_part(VM.target, machine.vm)
    if machine.vmi is not None and machine.kind is not VMI:
        yield object_part(VMI.target, machine.vmi)
    for claim in parts.claims(machine):
        for target, found in ((kindtable.DATA_VOLUMES, volumes), (kindtable.CLAIMS, claims)):
            if claim in found:
                yield object_part(target, found[claim])


def object_part(target: Target[Data], data: Data, *, is_written: bool = False) -> WebObjectPart:
    """Return an object with its YAML."""
    return WebObjectPart(
        group=target.group,
        version=target.version,
        kind=target.kind,
        namespace=texts(data, "metadata", "namespace"),
        name=texts(data, "metadata", "name"),
        role="written" if is_written else "made",
        yaml=write.to_yaml([readable({"apiVersion": target.api_version, "kind": target.kind, **data})]),
    )


def readable(data: Data) -> Data:
    """Return an object without what no person reads: the record of its managers, and its last applied form in one line."""
    metadata = {name: value for name, value in (data.get("metadata") or {}).items() if name != "managedFields"}
    notes = metadata.get("annotations")
    if isinstance(notes, dict) and APPLIED in notes:
        kept = {name: value for name, value in notes.items() if name != APPLIED}
        metadata = {name: value for name, value in metadata.items() if name != "annotations"} | ({"annotations": kept} if kept else {})
    return {**data, "metadata": metadata}


def condition_parts(machine: MachineView) -> list[WebConditionPart]:
    """Return the conditions of what the user wrote, and those that only its VirtualMachine or its instance has."""
    found: dict[str, WebConditionPart] = {}
    for data in (machine.data, machine.vm, machine.vmi):
        for each in entries(data, "status", "conditions"):
            name, status = texts(each, "type"), texts(each, "status")
            part = WebConditionPart(
                type=name,
                status=status,
                reason=texts(each, "reason"),
                message=texts(each, "message"),
                changed=texts(each, "lastTransitionTime"),
                good=name in _ABILITIES or (status != "True" if name in _TROUBLES else status == "True"),
            )
            found.setdefault(name, part)
    return list(found.values())


# --- the words that sum a machine up ----------------------------------------------------------------------------------------


def made_of(machine: MachineView) -> str:
    """Return what the object of a dialect became; empty for KubeVirt's own."""
    if not machine.kind.front:
        return ""
    if machine.vm_key is not None:
        return f"VirtualMachine {machine.vm_key.name}"
    given = texts(machine.data, "status", "id")
    return f"{given} at its Provider" if given else "no VirtualMachine yet"


def run_strategy(machine: MachineView) -> str:
    """Return the run strategy, in the words of the dialect."""
    return machine.kind.adapter.strategy(machine.data) or (verdict.strategy_of(machine.vm) if machine.vm is not None else "")


def firmware(machine: MachineView) -> str:
    """Return the firmware of the guest; empty if its spec is not here."""
    spec = parts.spec_of(machine)
    if not spec:
        return ""
    efi = at(spec, "domain", "firmware", "bootloader", "efi")
    if efi is None:
        return "BIOS"
    # KubeVirt's default with EFI.
    return "UEFI" if at(efi, "secureBoot") is False else "UEFI with Secure Boot"


def machine_type(machine: MachineView) -> str:
    return texts(machine.vmi, "status", "machine", "type") or texts(parts.spec_of(machine), "domain", "machine", "type")


def accelerator(machine: MachineView, node: Data | None) -> str:
    """Return the accelerator of a running guest: by what its instance says of a slow one, else by its node."""
    if machine.vmi is None:
        return ""
    if holds(machine.vmi, "SoftwareEmulation"):
        return "TCG"
    if holds(machine.vmi, "SimulatedGuest"):
        return "simulated"
    if node is None:
        return ""
    return "KVM" if at(node, "status", "allocatable", "devices.kubevirt.io/kvm") not in (None, "0") else "TCG"
