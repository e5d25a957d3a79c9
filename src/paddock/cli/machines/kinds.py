"""The kinds that are machines, in the five dialects. The declarations are not loaded: a test holds this table against them."""

from collections.abc import Mapping

import msgspec

from paddock.base.errors import Terminal
from paddock.base.nearest import nearest
from paddock.client.target import Data, Target, plain

_KUBERMATIC_NOTES = ("virtualization.k8c.io/", "kubevirt.io/immediate-data-volume-creation")
# The condition of a machine whose sources are Kubermatic's.
_KUBERMATIC_CONDITION = "DataSourceResolved"


class MachineKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind whose objects are machines. `words` are what people call it, besides its kind, plural and group."""

    dialect: str
    group: str
    version: str
    kind: str
    plural: str
    words: tuple[str, ...] = ()
    # A machine of a dialect that becomes a VirtualMachine of KubeVirt.
    front: bool = False

    @property
    def target(self) -> Target[Data]:
        """The kind as the API serves it, with objects as plain data."""
        return plain(self.group, self.version, self.plural, self.kind)

    @property
    def qualified(self) -> str:
        """`virtualmachines.kubevirt.io`."""
        return f"{self.plural}.{self.group}"

    @property
    def word(self) -> str:
        """The shortest word that names this kind and no other: `vm`, `vmi`, `stakater`, `virtrigaud`, `vitistack`."""
        return self.words[0]

    def is_called(self, word: str) -> bool:
        """Return whether a word of a command line names the kind: `vm`, `virtualmachines`, `VirtualMachine`, each also with its group."""
        name, _, group = word.lower().partition(".")
        return name in (self.kind.lower(), self.plural, *self.words) and group in ("", self.group)


VM = MachineKind(
    dialect="kubevirt",
    group="kubevirt.io",
    version="v1",
    kind="VirtualMachine",
    plural="virtualmachines",
    words=("vm", "vms", "kubevirt", "kubermatic"),
)
VMI = MachineKind(
    dialect="kubevirt",
    group="kubevirt.io",
    version="v1",
    kind="VirtualMachineInstance",
    plural="virtualmachineinstances",
    words=("vmi", "vmis"),
)
STAKATER = MachineKind(
    dialect="stakater",
    group="infrastructure.stakater.com",
    version="v1",
    kind="VirtualMachine",
    plural="virtualmachines",
    words=("stakater",),
    front=True,
)
VIRTRIGAUD = MachineKind(
    dialect="virtrigaud",
    group="infra.virtrigaud.io",
    version="v1beta1",
    kind="VirtualMachine",
    plural="virtualmachines",
    words=("virtrigaud",),
    front=True,
)
VITISTACK = MachineKind(
    dialect="vitistack",
    group="vitistack.io",
    version="v1alpha1",
    kind="Machine",
    plural="machines",
    words=("vitistack", "m"),
    front=True,
)
FRONTS = (STAKATER, VIRTRIGAUD, VITISTACK)
# The order in which a name is looked for: what people wrote goes before what was made of it.
MACHINES = (*FRONTS, VM, VMI)
_BY_ID: Mapping[tuple[str, str], MachineKind] = {(each.group, each.kind): each for each in MACHINES}


class NoMachineKind(Terminal):
    """A word names no kind of machine."""


def of(group: str, kind: str) -> MachineKind | None:
    """Return the kind of machine of a group and kind."""
    return _BY_ID.get((group, kind))


def called(word: str) -> tuple[MachineKind, ...]:
    """Return the kinds that a word names, the likeliest first. Raises `NoMachineKind`."""
    found = tuple(each for each in MACHINES if each.is_called(word))
    if not found:
        known = {each.kind.lower() for each in MACHINES} | {name for each in MACHINES for name in each.words}
        meant = nearest(word.lower(), known)
        hint = f'did you mean "{meant}"?' if meant else f"the words are {', '.join(each.word for each in MACHINES)}"
        raise NoMachineKind(f'no kind of machine is called "{word}"', fix=hint)
    return found


def dialect_of(kind: MachineKind, data: Data) -> str:
    """Return the dialect of an object. Kubermatic's machines are KubeVirt's with annotations or sources of Kubermatic."""
    return "kubermatic" if kind is VM and _is_kubermatics(data) else kind.dialect


def _is_kubermatics(data: Data) -> bool:
    if any(each.get("type") == _KUBERMATIC_CONDITION for each in (data.get("status") or {}).get("conditions") or ()):
        return True
    templates = (data.get("spec") or {}).get("dataVolumeTemplates") or ()
    notes = [(each.get("metadata") or {}).get("annotations") or {} for each in (data, *templates)]
    return any(key.startswith(_KUBERMATIC_NOTES) for each in notes for key in each)


def is_own_form(data: Data) -> bool:
    """Return whether a Machine is in Vitistack's own form, which names its provider."""
    return "provider" in (data.get("spec") or {})
