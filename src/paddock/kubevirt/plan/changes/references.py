"""The references between objects, by field and kind: one table for the commands and the controllers. Each dialect has its own rows, in
the module that its value names.

Only references to objects that users write are here. Infrastructure of a cluster (storage classes, nodes) is not: nobody keeps it
beside their machines.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any

import msgspec

from paddock.kubernetes import catalog
from paddock.kubernetes.schema.dialect import KindId
from paddock.kubernetes.schema.finding import Path
from paddock.kubevirt.plan.changes.patterns import Parts, parse, places


class ReferringField(msgspec.Struct, frozen=True):
    """A field that names an object.

    `to` lists the kinds that will do, the first being the one that is meant. `kind_in` and `namespace_in` are members beside
    the name that choose among them; a name may also be written `namespace/name` where `qualified`. Names in `known` mean
    something without an object.
    """

    path: str
    to: tuple[KindId, ...]
    namespace_in: str = ""
    kind_in: str = ""
    qualified: bool = False
    known: tuple[str, ...] = ()


class ProvidingField(msgspec.Struct, frozen=True):
    """A field that names an object which the owner brings along."""

    path: str
    what: tuple[KindId, ...]


class FieldReference(msgspec.Struct, frozen=True):
    """A reference that an object makes. `namespace` is None where the object's own is meant."""

    path: Path
    to: tuple[KindId, ...]
    name: str
    namespace: str | None


# What a module of references says, by kind.
References = Mapping[KindId, tuple[ReferringField, ...]]
Provides = Mapping[KindId, tuple[ProvidingField, ...]]


def references(group: str, kind: str, data: dict[str, Any]) -> Iterator[FieldReference]:
    """Every object that an object names."""
    for row, parts in _compiled(group, kind):
        for path, owner, name in places(parts, data):
            if not isinstance(name, str) or not name or name in row.known:
                continue
            chosen = owner.get(row.kind_in) if row.kind_in else None
            to = tuple(each for each in row.to if each[1] == chosen) if chosen else row.to
            if not to:
                continue
            namespace = owner.get(row.namespace_in) if row.namespace_in else None
            if row.qualified and "/" in name:
                namespace, name = name.split("/", 1)
            yield FieldReference(path, to, name, namespace if isinstance(namespace, str) and namespace else None)


def provided(group: str, kind: str, data: dict[str, Any]) -> Iterator[tuple[KindId, str]]:
    """The objects that an object brings along, in its own namespace."""
    for row in tables_of(group, kind)[1].get((group, kind), ()):
        for _, _, name in places(parse(row.path), data):
            if isinstance(name, str) and name:
                for what in row.what:
                    yield what, name


@cache
def tables_of(group: str, kind: str) -> tuple[References, Provides]:
    """The tables of the dialect that has a kind."""
    dialect = catalog.owner(group, kind)
    if dialect is None or not dialect.references:
        return {}, {}
    module = import_module(dialect.references)
    return module.REFERENCES, module.PROVIDES


@cache
def _compiled(group: str, kind: str) -> tuple[tuple[ReferringField, Parts], ...]:
    return tuple((row, parse(row.path)) for row in tables_of(group, kind)[0].get((group, kind), ()))


SECRET: KindId = ("", "Secret")
CONFIG_MAP: KindId = ("", "ConfigMap")
CLAIM: KindId = ("", "PersistentVolumeClaim")
ATTACHMENT: KindId = ("k8s.cni.cncf.io", "NetworkAttachmentDefinition")
DATA_VOLUME: KindId = ("cdi.kubevirt.io", "DataVolume")
DATA_SOURCE: KindId = ("cdi.kubevirt.io", "DataSource")
IMAGE: KindId = ("virtualization.k8c.io", "Image")
MACHINE: KindId = ("kubevirt.io", "VirtualMachine")
INSTANCE: KindId = ("kubevirt.io", "VirtualMachineInstance")
SNAPSHOT: KindId = ("snapshot.kubevirt.io", "VirtualMachineSnapshot")
