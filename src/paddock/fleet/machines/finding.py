"""Finds machines by name, or all of them. An object of a dialect and what was made of it are one machine."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from paddock.base.errors import PaddockError, Terminal
from paddock.base.jsondata import Data
from paddock.base.names import check_name
from paddock.base.nearest import nearest
from paddock.fleet import kinds
from paddock.fleet.diagnosis.scene import ObjectPlace, at, entries, texts
from paddock.fleet.kinds import FRONTS, MACHINES, VM, VMI, MachineKind
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Forbidden, NotFound
from paddock.kubernetes.client.options import Selection
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta.matching import parse_labels

_FEW = 3


class MachineNotFound(Terminal):
    """No machine has this name."""


class AmbiguousMachine(Terminal):
    """Several machines have this name."""


class MachineView(msgspec.Struct, frozen=True, kw_only=True):
    """A machine: the object that the user wrote, and what was made of it. `vm` may be that object itself."""

    kind: MachineKind
    data: Data
    vm: Data | None = None
    vmi: Data | None = None

    @property
    def name(self) -> str:
        """The name of the object that the user wrote."""
        return texts(self.data, "metadata", "name")

    @property
    def namespace(self) -> str:
        return texts(self.data, "metadata", "namespace")

    @property
    def key(self) -> Key:
        """Its place among the objects of its kind."""
        return Key(self.namespace, self.name)

    @property
    def ref(self) -> ObjectPlace:
        """Its place, as `paddock why` names it."""
        return ObjectPlace(self.kind.group, self.kind.kind, self.namespace, self.name)

    @property
    def dialect(self) -> str:
        """The dialect that it is written in."""
        return kinds.dialect_of(self.kind, self.data)

    @property
    def vm_key(self) -> Key | None:
        """The place of its VirtualMachine; None for a machine without one."""
        return _key(self.vm) if self.vm is not None else None

    @property
    def vmi_key(self) -> Key | None:
        """The place of its VirtualMachineInstance; None for a machine that has none now."""
        return _key(self.vmi) if self.vmi is not None else None

    @property
    def console(self) -> str:
        """The address where another hypervisor shows its screen; empty where none does."""
        return self.kind.adapter.console(self.data)

    def __str__(self) -> str:
        return f"{self.kind.word}/{self.name}"


def needs_vm(machine: MachineView, what: str) -> Key:
    """Return the place of the machine's VirtualMachine. Raises `MachineNotFound` for a machine that has none on this server.

    `what` is what cannot be done without one: "open the console".
    """
    if machine.vm is not None:
        return _key(machine.vm)
    adapter = machine.kind.adapter
    if adapter.is_elsewhere(machine.data):
        why = f"it runs on another hypervisor, by Provider {adapter.provider(machine.data)}"
        fix = f"its console is at {machine.console}" if machine.console else "use that hypervisor's own tools for it"
        raise MachineNotFound(f"cannot {what} of {machine}", why=why, fix=fix)
    if machine.kind is VMI:
        raise MachineNotFound(f"cannot {what} of {machine}", why="it is an instance without a VirtualMachine")
    raise MachineNotFound(
        f"cannot {what} of {machine}", why="it has no VirtualMachine yet", fix=f"`paddock why {machine}` says what it waits for"
    )


# --- by name ----------------------------------------------------------------------------------------------------------------


async def find(client: Client, text: str, namespace: str) -> MachineView:
    """Return the machine that `[KIND/]NAME` means. Raises `MachineNotFound` and `AmbiguousMachine`."""
    word, slash, name = text.rpartition("/")
    check_name(name)
    wanted = kinds.called(word) if slash else MACHINES
    lookup = _Lookup(client)
    await lookup.get([(kind, Key(namespace, name)) for kind in wanted])
    asked = set(lookup.found)
    if not asked:
        raise await _nothing(client, text, name, namespace, lookup.refused)
    # What an object leads to may lead further: an instance to its machine, and that to what stands in front of it.
    while more := [each for each in lookup.neighbours() if each not in lookup.known]:
        await lookup.get(more)
    found = [each for each in join(lookup.by_kind()) if asked & set(_places(each))]
    if len(found) > 1:
        choices = ", ".join(str(each) for each in found)
        raise AmbiguousMachine(f'{len(found)} machines are called "{name}" in namespace "{namespace}"', fix=f"say which one: {choices}")
    return found[0]


_Place = tuple[MachineKind, Key]


class _Lookup:
    """The objects that were asked for."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.known: set[_Place] = set()
        self.found: dict[_Place, Data] = {}
        self.refused: list[PaddockError] = []

    async def get(self, places: Iterable[_Place]) -> None:
        """Read objects; those that are not there are left out."""
        places = list(dict.fromkeys(places))
        self.known |= set(places)
        await asyncio.gather(*(self._one(each) for each in places))

    async def _one(self, location: _Place) -> None:
        try:
            self.found[location] = await self._client.get(location[0].target, location[1])
        except NotFound:
            pass
        except Forbidden as error:
            self.refused.append(error)

    def neighbours(self) -> list[_Place]:
        """The places of what stands in front of the objects, and of what is made of them."""
        return [each for (kind, _), data in list(self.found.items()) for each in _neighbours(kind, data)]

    def by_kind(self) -> dict[MachineKind, list[Data]]:
        """The objects of each kind."""
        return {kind: [data for (each, _), data in self.found.items() if each is kind] for kind in MACHINES}


async def _nothing(client: Client, text: str, name: str, namespace: str, refused: Sequence[PaddockError]) -> PaddockError:
    """Return the error for a name that nothing has: with the namespace that has it, or with the nearest name."""
    if len(refused) == len(MACHINES):
        return refused[0]
    try:
        everything = await every(client)
    except Forbidden:
        everything = await every(client, namespace)
    elsewhere = sorted({each.namespace for each in everything if each.name == name and each.namespace != namespace})
    here = sorted({each.name for each in everything if each.namespace == namespace})
    if elsewhere:
        fix = f"there is one in namespace {', '.join(elsewhere[:_FEW])}: add -n {elsewhere[0]}"
    elif meant := nearest(name, here):
        fix = f'did you mean "{meant}"?'
    elif here:
        fix = "`paddock ls` lists them"
    else:
        fix = "the namespace has no machines; `paddock ls -A` lists those of all namespaces"
    return MachineNotFound(f'there is no machine "{text}" in namespace "{namespace}"', fix=fix)


# --- all --------------------------------------------------------------------------------------------------------------------


async def every(client: Client, namespace: str | None = None, labels: str = "") -> list[MachineView]:
    """Return all machines of a namespace (None: of all), in the order of their names. `labels` selects by the object the user wrote."""
    selection = Selection(namespace=namespace or "")
    answers = await asyncio.gather(*(_list(client, kind, selection) for kind in MACHINES))
    refused = [each for each in answers if isinstance(each, Forbidden)]
    if len(refused) == len(answers):
        raise refused[0]
    lists = {kind: answer for kind, answer in zip(MACHINES, answers, strict=True) if not isinstance(answer, Forbidden)}
    return ordered(selected(join(lists), labels))


def ordered(machines: Iterable[MachineView]) -> list[MachineView]:
    """Return machines in the order of their names."""
    return sorted(machines, key=lambda each: (each.namespace, each.name, each.kind.group, each.kind.kind))


def selected(machines: Iterable[MachineView], labels: str) -> list[MachineView]:
    """Return the machines whose own labels fulfil a selector. Raises `BadSelector`."""
    if not labels:
        return list(machines)
    query = parse_labels(labels)
    return [each for each in machines if query.matches(at(each.data, "metadata", "labels") or {})]


async def _list(client: Client, kind: MachineKind, selection: Selection) -> list[Data] | Forbidden:
    try:
        return (await client.list(kind.target, selection)).items
    except NotFound:
        # The server does not have the kind.
        return []
    except Forbidden as error:
        return error


# --- one machine of several objects -----------------------------------------------------------------------------------------


def join(objects: Mapping[MachineKind, Iterable[Data]]) -> list[MachineView]:
    """Return one machine for each object that nothing stands in front of, with what was made of it."""
    vms = {_key(data): data for data in objects.get(VM, ())}
    vmis = {_key(data): data for data in objects.get(VMI, ())}
    marked = {mark: data for data in vms.values() if (mark := _mark(data))}
    machines: list[MachineView] = []
    hidden: set[Key] = set()
    for kind in FRONTS:
        for data in objects.get(kind, ()):
            key = _below(kind, data)
            # A provider creates the VirtualMachine before the object's status can name it. Until then, its label leads here.
            vm = vms.get(key) if key is not None else marked.get(texts(data, "metadata", "uid"))
            if vm is None or not _is_made_of(vm, data):
                machines.append(MachineView(kind=kind, data=data))
                continue
            hidden.add(_key(vm))
            machines.append(MachineView(kind=kind, data=data, vm=vm, vmi=vmis.get(_key(vm))))
    machines += [MachineView(kind=VM, data=vm, vm=vm, vmi=vmis.get(key)) for key, vm in vms.items() if key not in hidden]
    machines += [MachineView(kind=VMI, data=vmi, vmi=vmi) for key, vmi in vmis.items() if key not in vms]
    return machines


def _key(data: Data) -> Key:
    return Key(texts(data, "metadata", "namespace"), texts(data, "metadata", "name"))


def _below(kind: MachineKind, data: Data) -> Key | None:
    """Return the place of the VirtualMachine that an object of a dialect becomes; None where it becomes none, or none yet."""
    found = kind.adapter.below(data)
    return Key(*found) if found is not None else None


def _mark(vm: Data) -> str:
    """Return the UID of the object that a provider made a VirtualMachine for, or ""."""
    labels = at(vm, "metadata", "labels") or {}
    return next((str(labels[each.adapter.owner_label]) for each in FRONTS if each.adapter.owner_label in labels), "")


def _is_made_of(vm: Data, front: Data) -> bool:
    """Return whether a VirtualMachine belongs to an object. Another one may have taken its name."""
    uid = texts(front, "metadata", "uid")
    owners = {texts(each, "uid") for each in entries(vm, "metadata", "ownerReferences")}
    owners.add(_mark(vm))
    # A machine that a provider adopted has no mark.
    return uid in owners or texts(front, "status", "provider", "uid") == texts(vm, "metadata", "uid")


def _neighbours(kind: MachineKind, data: Data) -> Iterator[_Place]:
    key = _key(data)
    if kind is VM:
        yield VMI, key
        yield from _above(data)
    elif kind is VMI:
        yield VM, key
    elif (below := _below(kind, data)) is not None:
        yield VM, below


def _above(vm: Data) -> Iterator[_Place]:
    """Yield the places of what a VirtualMachine may have been made of."""
    namespace = texts(vm, "metadata", "namespace")
    for owner in entries(vm, "metadata", "ownerReferences"):
        kind = kinds.of(texts(owner, "apiVersion").partition("/")[0], texts(owner, "kind"))
        if kind is not None and kind.front:
            yield kind, Key(namespace, texts(owner, "name"))
    notes = at(vm, "metadata", "annotations") or {}
    for front in FRONTS:
        if owner_name := notes.get(front.adapter.owner_annotation, ""):
            yield front, Key.of(owner_name)


def _places(machine: MachineView) -> Iterator[_Place]:
    yield machine.kind, machine.key
    if machine.vm is not None:
        yield VM, _key(machine.vm)
    if machine.vmi is not None:
        yield VMI, _key(machine.vmi)
