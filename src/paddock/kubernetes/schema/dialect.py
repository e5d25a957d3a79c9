"""A dialect is one value: what all parts of the program have to know of it, declared once in the package of its kinds.

Parts that belong to a layer above are named by their modules, and that layer loads them on first use. So the value imports nothing
upwards, and a command that reads one manifest does not pay for all dialects. `paddock.kubernetes.catalog` has the one list of dialects.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from paddock.kubernetes.schema.finding import Path

# An API group and a kind.
KindId = tuple[str, str]


class DialectMachine(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of a dialect whose objects are machines."""

    group: str
    version: str
    kind: str
    plural: str
    # what people call it, besides its kind, plural and group; the first word names no other kind
    words: tuple[str, ...] = ()
    # What Paddock's own server writes into a new one: its controllers would do it right after, in a write of their own.
    finalizer: str = ""
    first_status: Mapping[str, Any] = {}
    # Nothing is written to a machine that has this annotation with the value "true".
    paused_by: str = ""
    # The least that its status says once it was carried out: some rules about changes hold from then on.
    carried_out: Mapping[str, Any] = {}

    @property
    def id(self) -> KindId:
        """The group and the kind."""
        return self.group, self.kind


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """A dialect. A module that is named here without `paddock.` lies in the dialect's own package."""

    name: str
    # as people write it, before its kinds where KubeVirt has some of the same name
    title: str = ""
    # the module of each kind, in the order of the catalog; it has a tuple KINDS
    kinds: Mapping[KindId, str]
    machines: tuple[DialectMachine, ...] = ()
    # the API group that no other dialect has kinds in
    group: str = ""

    # --- translation ---
    # the module with `to_kubevirt` and `from_kubevirt`; the hub and the built-in kinds have none
    translator: str = ""
    # the kinds that the translator takes; the others of its group say something about machines, and are read for these
    translated: tuple[KindId, ...] = ()
    # the kinds of KubeVirt that `from_kubevirt` takes
    read_back: tuple[str, ...] = ("VirtualMachine",)
    # its machines are KubeVirt's own kinds, with more in them
    extends_kubevirt: bool = False
    # a machine is nothing but the KubeVirt objects that it becomes
    is_all_in_kubevirt: bool = False

    # --- documents ---
    # its disks are copies of a DataSource
    copies_data_sources: bool = False
    # a field of its machines has the seconds to shut down
    has_grace_period: bool = True
    # it makes a machine's disks itself; an empty root disk may be one that is there already, and stays beside
    makes_disks: bool = False
    keeps_empty_root: bool = False
    # the forms of its machines; the translator has `is_own(value)` and `to_own(value, world)` for the second one
    forms: tuple[str, ...] = ()
    # a member of the spec that every release of Paddock has declared, by kind: a definition without it is somebody else's
    always: Mapping[str, str] = {}

    # --- what people ask of machines ---
    # the module with ADAPTER, which reads and writes machines in the words of the dialect
    adapter: str = ""
    # the module with DIAGNOSIS, what `paddock why` knows of its kinds
    diagnosis: str = ""

    # --- changes ---
    # the module with EFFECTS, the effect of each field's change, by kind
    effects: str = ""
    # the module with REFERENCES, the fields that name objects, and PROVIDES, those that name what the object brings along
    references: str = ""
    # the module with `prediction(old, new, worlds, difference)`: the effect of a change on one machine, where more is known than the rows
    predictions: str = ""
    # the module with `machines(resource)`, of which an object consists, and `is_elsewhere(machine, objects)`: one that takes no quota here
    quotas: str = ""
    # fields that are words, of which kubectl makes booleans: `On` and `Off`
    power_words: Mapping[KindId, Path] = {}

    # --- controllers ---
    # the module with `wire(program, fronts, front)`, which adds the controllers to a program
    wiring: str = ""
    # the module that adds them to an embedded server, with `wire(program, engine, environment)`, if that is another one
    embedding: str = ""
    # what users store, an API group or a collection: an embedded server starts the controllers once there is some
    stored: str = ""
    # `paddock operator` looks after it unless --dialect names others
    is_by_default: bool = False

    @property
    def is_front(self) -> bool:
        """True for a dialect with kinds of machines of its own, which become KubeVirt's."""
        return bool(self.translator and self.machines)
