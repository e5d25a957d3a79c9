"""How the wishes of people about a machine are read and written in the words of its dialect. Pure.

The module that the value of a dialect names has one adapter, and the commands and the console ask it. What an adapter does not say for
itself is as KubeVirt has it.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from paddock.base import quantity
from paddock.base.errors import Terminal
from paddock.base.jsondata import Data, at
from paddock.kubernetes import catalog
from paddock.kubernetes.meta import fieldpath
from paddock.kubernetes.schema.dialect import KindId

_GIB = 2**30
FieldPath = tuple[str, ...]
Power = Literal["start", "stop"]
POD = "pod"
_MANUAL = "Manual"
ROOT = "root"


class ChangeRefused(Terminal):
    """The dialect of a machine has no field for a change, or the change contradicts the machine."""


class WrittenMachine(Protocol):
    """A machine as its user wrote it, and the VirtualMachine that was made of it."""

    @property
    def data(self) -> Data: ...
    @property
    def vm(self) -> Data | None: ...
    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def dialect(self) -> str: ...


class KindName(NamedTuple):
    """A kind as the API serves it."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def head(self) -> Data:
        """The first members of its objects."""
        return {"apiVersion": f"{self.group}/{self.version}", "kind": self.kind}


class ProviderKinds(msgspec.Struct, frozen=True, kw_only=True):
    """The kinds of a dialect whose machines Providers look after."""

    providers: KindName
    images: KindName
    networks: KindName
    sets: KindName
    migrations: KindName


class DiskWish(msgspec.Struct, frozen=True, kw_only=True):
    """A new disk: an empty one of a size, or one on a claim that exists."""

    name: str
    size: str = ""
    claim: str = ""
    storage_class: str = ""
    bus: str = ""


class NicWish(msgspec.Struct, frozen=True, kw_only=True):
    """A new interface. `network` is a NetworkAttachmentDefinition or NetworkConfiguration, or `pod`."""

    name: str
    network: str
    mac: str = ""
    model: str = ""


class PowerWords(Protocol):
    """The words of one kind for the wish about running. Every document is a merge patch."""

    def halted(self, data: Data) -> Data:
        """The patch after which the machine does not want to run."""

    def kept(self, data: Data, *, ran: bool) -> Data:
        """The patch that gives back the wish of now. A machine that did not run is not started by it."""

    def needs_start(self, data: Data) -> bool:
        """Return True if the machine starts on request only."""


class StrategyWords:
    """A run strategy, at a place of its own."""

    def __init__(self, *place: str, default: str) -> None:
        self._place = place
        self._default = default

    def halted(self, data: Data) -> Data:
        """The strategy becomes `Halted`."""
        return _nested(self._place, "Halted")

    def kept(self, data: Data, *, ran: bool) -> Data:
        found = fieldpath.value_at(data, self._place)
        starts = (found or self._default) not in ("Halted", _MANUAL)
        return _nested(self._place, "Halted" if starts and not ran else found)

    def needs_start(self, data: Data) -> bool:
        """Return True for `Manual`."""
        return bool(fieldpath.value_at(data, self._place) == _MANUAL)


class _KubevirtWords(StrategyWords):
    """KubeVirt has two forms."""

    def __init__(self) -> None:
        super().__init__("spec", "runStrategy", default="Always")

    def halted(self, data: Data) -> Data:
        return {"spec": {"running": False}} if fieldpath.value_at(data, ("spec", "running")) is not None else super().halted(data)

    def kept(self, data: Data, *, ran: bool) -> Data:
        running = fieldpath.value_at(data, ("spec", "running"))
        return {"spec": {"running": bool(running) and ran}} if running is not None else super().kept(data, ran=ran)


def _nested(path: tuple[str, ...], value: Any) -> Data:
    for name in reversed(path):
        value = {name: value}
    document: Data = value
    return document


class FieldChange(msgspec.Struct, frozen=True):
    """A member of the object that the user wrote, and its new value."""

    path: FieldPath
    value: Any


class PowerCall(msgspec.Struct, frozen=True):
    """A call of the VirtualMachine's subresource, and what people read about it."""

    text: str


SizeWriter = Callable[[WrittenMachine, Data, str], None]


class MachineAdapter:
    """Reads and writes machines as KubeVirt has them, where a dialect has no words of its own. `disks` are the names of the disks."""

    # --- reading ---
    # the members of the status with addresses, and where the object says processors, memory and the source of the first disk
    ips: tuple[str, ...] = ()
    cpus: tuple[FieldPath, ...] = ()
    memory: tuple[FieldPath, ...] = ()
    mebibytes: tuple[FieldPath, ...] = ()
    images: tuple[FieldPath, ...] = ()
    # its own kind of images, and the kinds around its Providers
    image_kind: KindName | None = None
    provider_kinds: ProviderKinds | None = None
    # the label and the annotation of a VirtualMachine with the UID and the namespace and name of the object it was made for
    owner_label: str = ""
    owner_annotation: str = ""

    def below(self, data: Data) -> tuple[str, str] | None:
        """Return the namespace and name of the VirtualMachine that an object becomes; None where it becomes none, or none yet."""
        return None

    def is_in(self, data: Data) -> bool:
        """Return whether a machine of KubeVirt has something of the dialect in it."""
        return False

    def imported(self, kind: KindId, data: Data) -> Iterator[tuple[KindId, str]]:
        """Yield the claims and networks of this server that an object names in fields that name something else elsewhere."""
        yield from ()

    def is_elsewhere(self, data: Data) -> bool:
        """Return whether another hypervisor has the machine."""
        return False

    def is_on(self, data: Data) -> bool:
        """Return whether a machine without a VirtualMachine here runs."""
        return False

    def provider(self, data: Data) -> str:
        """Return the name of the Provider that looks after the machine."""
        return ""

    def console(self, data: Data) -> str:
        """Return the address where another hypervisor shows the screen."""
        return ""

    def strategy(self, data: Data) -> str:
        """Return the run strategy in the words of the dialect; empty for that of the VirtualMachine."""
        return ""

    # --- running ---
    # It has no word for a restart: the machine is switched off and on.
    restarts_by_power: bool = False
    # Its word for a stop says whether the guest gets time.
    has_forced_stop: bool = False
    # why a change cannot restart the guest
    no_restart: str = ""

    def power(self, machine: WrittenMachine, wish: Power, *, force: bool) -> FieldChange | PowerCall:
        """Return what starts or stops the machine."""
        return PowerCall(f"a request to {wish}")

    def wants_to_run(self, data: Data) -> bool | None:
        """Return whether the object wants the machine to run; None if only its VirtualMachine says so."""
        return None

    # --- disks, interfaces, sizes ---
    disks: FieldPath = ("spec", "disks")
    nics: FieldPath = ("spec", "networks")
    # Without a list, the machine has an interface on the pod network.
    has_pod_nic: bool = True
    # the kind of the networks that its interfaces name; None: NetworkAttachmentDefinition
    network_kind: KindName | None = None
    # the writers of the keys of `paddock set`
    sizes: Mapping[str, SizeWriter] = {}

    def add_disk(self, machine: WrittenMachine, data: Data, wish: DiskWish, disks: Collection[str]) -> None:
        """Add a disk to the object. Raises `ChangeRefused`."""
        raise _no_field(machine, "add a disk to")

    def grow_disk(self, machine: WrittenMachine, data: Data, wish: DiskWish, disks: Collection[str]) -> None:
        """Make a disk of the object larger. Raises `ChangeRefused`."""
        raise _no_field(machine, "change a disk of")

    def check_nics(self, machine: WrittenMachine) -> None:
        """Raise `ChangeRefused` if the interfaces of the machine stay as they are."""

    def add_nic(self, machine: WrittenMachine, data: Data, wish: NicWish) -> None:
        """Add an interface to the object. Raises `ChangeRefused`."""
        raise _no_field(machine, "add an interface to")

    # --- snapshots and clones ---
    # the kinds of its own, and where a snapshot names its machine; None: KubeVirt's
    snapshot_kind: KindName | None = None
    snapshot_machine: FieldPath = ()
    clone_kind: KindName | None = None
    # where the objects of its own kinds say how far they are
    clone_machine: FieldPath = ()
    clone_percentage: FieldPath = ()
    # why a machine cannot stay off after a restore, and why its memory cannot be left out
    restore_starts: str = ""
    restore_needs_memory: str = ""

    def snapshot_spec(self, machine: WrittenMachine, *, memory: bool) -> Data:
        """Return the spec of a snapshot of its own kind."""
        return {}

    def clone_spec(self, machine: WrittenMachine, new: str, *, start: bool) -> Data:
        """Return the spec of a clone of its own kind."""
        return {}

    def no_snapshot(self, data: Data) -> str:
        """Return why no snapshot can be taken now."""
        return ""

    # --- moves to another server ---
    # the wish about running, and why machines do not move
    power_words: PowerWords = _KubevirtWords()
    no_move: str = ""
    # Its interfaces can name their MAC addresses.
    names_macs: bool = False
    # its kinds that machines refer to, and that move with them
    carried: tuple[KindName, ...] = ()

    def maker(self, vm: Data) -> str:
        """Return a text that names the program of the dialect that maintains a VirtualMachine for an object of another API."""
        return ""

    # --- removal ---
    # why the disks go with a machine, and what can be done about it
    disks_go: tuple[str, str] | None = None
    # the label with the machine's name on claims that go with it
    claim_label: str = ""

    def leftovers(self, machine: WrittenMachine) -> Iterator[tuple[str, str]]:
        """Yield the objects that may have been made for a machine and go only if it owns them, by plural and name."""
        yield from ()


@cache
def of(dialect: str) -> MachineAdapter:
    """Return the adapter of a dialect, loaded on first use."""
    known = next((each for each in catalog.every_dialect() if each.name == dialect), None)
    if known is None or not known.adapter:
        return MachineAdapter()
    found: MachineAdapter = import_module(known.adapter).ADAPTER
    return found


def every() -> Iterator[MachineAdapter]:
    """Yield the adapters of all dialects, in the order of the list."""
    yield from (of(each.name) for each in catalog.every_dialect() if each.adapter)


# --- for adapters -----------------------------------------------------------------------------------------------------------


def place(data: Data, *path: str) -> Data:
    """Return the mapping at a path, made where it is missing."""
    for name in path:
        if not isinstance(data.get(name), dict):
            data[name] = {}
        data = data[name]
    return data


def named(entries: Any, name: str) -> Data | None:
    """Return the entry of a list that has a name."""
    return next((each for each in entries or () if each.get("name") == name), None)


def names(entries: Any) -> str:
    """Return the names of a list for a message."""
    return ", ".join(str(each.get("name")) for each in entries or ()) or "none"


def _no_field(machine: WrittenMachine, what: str) -> ChangeRefused:
    return ChangeRefused(f"cannot {what} {machine}", why=f"{machine.dialect} has no field for it")


def check_new_disk(machine: WrittenMachine, disks: Collection[str], present: object, name: str) -> None:
    """Raise `ChangeRefused` if the machine has a disk of this name."""
    if name in disks or named(present, name) is not None:
        raise ChangeRefused(
            f'{machine} already has a disk "{name}"', fix=f"choose another name; `paddock disk ls {machine.name}` lists them"
        )


def check_new_nic(machine: WrittenMachine, present: list[Data], name: str) -> None:
    """Raise `ChangeRefused` if the machine has an interface of this name."""
    if named(present, name) is not None:
        raise ChangeRefused(f'{machine} already has an interface "{name}"', fix="choose another name with --name")


def unknown_disk(machine: WrittenMachine, disks: Collection[str], name: str, present: object = ()) -> ChangeRefused:
    """Return the error for a disk that the machine does not have."""
    rows = [{"name": each} for each in disks] or present
    return ChangeRefused(f'{machine} has no disk "{name}"', fix=f"its disks: {names(rows)}")


def check_no_bus(machine: WrittenMachine, wish: DiskWish) -> None:
    """Raise `ChangeRefused` for a bus, which the dialect has no field for."""
    if wish.bus:
        raise ChangeRefused(
            f"cannot choose the bus of a disk of {machine}", why=f"{machine.dialect} has no field for it", fix="leave --bus out"
        )


def whole_gib(machine: WrittenMachine, size: str, who: str) -> int:
    """Return a size in GiB. Raises `ChangeRefused` for a part of one; `who` counts in whole ones."""
    count, rest = divmod(quantity.amount(size, "20Gi"), _GIB)
    if rest:
        raise ChangeRefused(f"a disk of {machine} cannot have {size}", why=f"{who} counts disks in whole GiB", fix=f"write {count + 1}Gi")
    return count


def cpu_at(*path: str) -> SizeWriter:
    """Return the writer of processors as sockets, cores and threads."""

    def write(machine: WrittenMachine, data: Data, value: str) -> None:
        spread(place(data, *path), machine, int(value))

    return write


def text_at(*path: str) -> SizeWriter:
    """Return the writer of a text."""

    def write(_: WrittenMachine, data: Data, value: str) -> None:
        place(data, *path[:-1])[path[-1]] = value

    return write


def run_strategy_at(*path: str) -> SizeWriter:
    """Return the writer of a run strategy."""

    def write(_: WrittenMachine, data: Data, value: str) -> None:
        spec = place(data, *path)
        # `running` is the older spelling, and the two exclude each other.
        spec.pop("running", None)
        spec["runStrategy"] = value

    return write


def grace_at(*path: str) -> SizeWriter:
    """Return the writer of the seconds that a guest has to shut down."""

    def write(_: WrittenMachine, data: Data, value: str) -> None:
        place(data, *path)["terminationGracePeriodSeconds"] = int(value)

    return write


def spread(cpu: Data, machine: WrittenMachine, count: int) -> None:
    """Write a number of processors as sockets, which can grow while the guest runs; cores and threads stay where the number allows it.

    What the user left out comes from a template or a default: the VirtualMachine below knows it.
    """
    known = at(machine.vm, "spec", "template", "spec", "domain", "cpu") or {}
    each = (cpu.get("cores") or known.get("cores") or 1) * (cpu.get("threads") or known.get("threads") or 1)
    if count % each == 0:
        cpu["sockets"] = count // each
    else:
        cpu.update(sockets=count, cores=1, threads=1)
    limit = cpu.get("maxSockets")
    if limit and cpu["sockets"] > limit:
        cpu["maxSockets"] = cpu["sockets"]
