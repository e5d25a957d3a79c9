"""The place that was chosen for a machine, as its status keeps it. A machine that exists stays where it is."""

import msgspec

from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudMachineStatus, VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.plan import marks

_PREFIX = f"{marks.OWN_PREFIX}placed-"


class PlacementDecision(msgspec.Struct, frozen=True, rename="kebab"):
    """A place: what is empty, the provider chooses."""

    host: str = ""
    cluster: str = ""
    zone: str = ""
    datastore: str = ""
    storage_pod: str = ""
    folder: str = ""
    resource_pool: str = ""
    # the host under which a clustered provider is asked for the machine
    target_host: str = ""
    # name and UID of the policy that allowed it
    policy: str = ""
    policy_uid: str = ""

    @property
    def place(self) -> str:
        """The place in one word, for statistics."""
        return self.host or self.cluster or self.datastore or self.storage_pod or "chosen-by-provider"

    def __str__(self) -> str:
        named = {
            "host": self.host,
            "cluster": self.cluster,
            "zone": self.zone,
            "datastore": self.datastore,
            "storage pod": self.storage_pod,
            "folder": self.folder,
            "resource pool": self.resource_pool,
        }
        return ", ".join(f"{name} {value}" for name, value in named.items() if value) or "wherever the Provider chooses"


def of(vm: VirtrigaudVirtualMachine) -> PlacementDecision:
    """The decision for a machine; an empty one if there is none."""
    return of_status(vm.status) if vm.status is not None else PlacementDecision()


def of_status(status: VirtrigaudMachineStatus) -> PlacementDecision:
    """The decision that a status keeps."""
    found = {name.removeprefix(_PREFIX): value for name, value in (status.provider or {}).items() if name.startswith(_PREFIX)}
    return msgspec.convert(found, PlacementDecision)


def recorded(status: VirtrigaudMachineStatus, decision: PlacementDecision) -> VirtrigaudMachineStatus:
    """The status with a decision in place of the one before."""
    others = {name: value for name, value in (status.provider or {}).items() if not name.startswith(_PREFIX)}
    made = {f"{_PREFIX}{name}": value for name, value in msgspec.to_builtins(decision).items() if value}
    return msgspec.structs.replace(status, provider={**others, **made} or None)
