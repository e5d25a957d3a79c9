"""Conflicts between a machine and the instancetype and preference it names (docs/spec/kubevirt.md V15, V16 and 7.5).

These findings need two objects, so they belong to no rule of one kind: callers that have the objects (a server, a command with all of
them in its input) check here. An instancetype or a preference that is not in the world gives no finding.
"""

from collections.abc import Iterator
from typing import TypeVar

from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.world import DEFAULT_NAMESPACE, ObjectSet, namespace_of
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.kinds.instancetype import InstancetypeSpec, VirtualMachineClusterInstancetype, VirtualMachineInstancetype
from paddock.kubevirt.kinds.pool import VirtualMachinePool
from paddock.kubevirt.kinds.preference import PreferenceSpec, VirtualMachineClusterPreference, VirtualMachinePreference
from paddock.kubevirt.kinds.virtualmachine import InstancetypeMatcher, PreferenceMatcher, VirtualMachine
from paddock.kubevirt.rules import pool as rules_pool
from paddock.kubevirt.rules import sizing
from paddock.kubevirt.rules.place import MachinePlace

N = TypeVar("N", bound=Resource)
C = TypeVar("C", bound=Resource)


def sizing_findings(machine: VirtualMachine | VirtualMachinePool, object_set: ObjectSet, settings: AdmissionSettings) -> Iterator[Finding]:
    """The conflicts of a machine, or of the machines of a pool, with its instancetype, and the needs of its preference."""
    if isinstance(machine, VirtualMachinePool):
        place = rules_pool.place_of(machine, settings)
    else:
        place = MachinePlace(spec=machine.spec, path=("spec",), namespace=machine.metadata.namespace, settings=settings)
    namespace = namespace_of(machine)
    size = instancetype_of(place.spec.instancetype, namespace, object_set)
    preference = preference_of(place.spec.preference, namespace, object_set)
    if size is not None:
        yield from sizing.conflicts(place, size)
    # Without its instancetype it is not known how large the machine is.
    if preference is not None and (size is not None or place.spec.instancetype is None):
        yield from sizing.unmet(place, preference, size)


def instancetype_of(matcher: InstancetypeMatcher | None, namespace: str, object_set: ObjectSet) -> InstancetypeSpec | None:
    """The instancetype that a machine names."""
    found = _named(matcher, namespace, object_set, (VirtualMachineInstancetype, VirtualMachineClusterInstancetype))
    return found.spec if found is not None else None


def preference_of(matcher: PreferenceMatcher | None, namespace: str, object_set: ObjectSet) -> PreferenceSpec | None:
    """The preference that a machine names."""
    found = _named(matcher, namespace, object_set, (VirtualMachinePreference, VirtualMachineClusterPreference))
    return found.spec if found is not None else None


def _named(
    matcher: InstancetypeMatcher | PreferenceMatcher | None, namespace: str, object_set: ObjectSet, kinds: tuple[type[N], type[C]]
) -> N | C | None:
    if matcher is None or not matcher.name:
        return None
    here, everywhere = kinds
    # Singular, plural and any case will do; none means the kind of cluster scope.
    if (matcher.kind or "").lower().removesuffix("s") == here.__name__.lower():
        return object_set.get(here, namespace, matcher.name)
    return object_set.get(everywhere, DEFAULT_NAMESPACE, matcher.name)
