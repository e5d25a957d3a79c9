"""VirtualMachine and VirtualMachineInstance at admission: what is set when they are made, and what only controllers may write.

The pipelines of these kinds are made with trusting settings; what is reserved is judged here, where the writer is known.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any, TypedDict
from uuid import UUID, uuid5

import msgspec

from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.kubernetes.meta import fieldpath
from paddock.kubernetes.meta.wire import from_data, to_data
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import CauseType, Finding, Path
from paddock.kubernetes.schema.kind import AdmissionSettings, Kind
from paddock.kubevirt.admission.gated import GatedStrategy
from paddock.kubevirt.kinds import instance as instances
from paddock.kubevirt.kinds import macs, replicaset, virtualmachine
from paddock.kubevirt.kinds.instancetype import InstancetypeSpec
from paddock.kubevirt.kinds.kubevirt_cr import KubeVirt
from paddock.kubevirt.kinds.preference import PreferenceSpec
from paddock.kubevirt.kinds.preset import VirtualMachineInstancePreset
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock.kubevirt.plan.instance import defaults
from paddock.kubevirt.plan.machine import instancetypes, presets
from paddock.kubevirt.rules import running, sizing
from paddock.kubevirt.rules.place import MachinePlace
from paddock.server.builtin.holding import hold
from paddock.server.builtin.trust import is_trusted
from paddock.server.resources import denials
from paddock.server.resources.strategy import CustomStrategy, ObjectView, WriteContext

FINALIZER = "kubevirt.io/virtualMachineControllerFinalize"
FOREGROUND = "kubevirt.io/foregroundDeleteVirtualMachine"
OBSERVED = {"kubevirt.io/latest-observed-api-version": "v1", "kubevirt.io/storage-observed-api-version": "v1"}
_TOPOLOGY_VERSION = "kubevirt.io/pci-topology-version"
# What is made of an object's own UID: as much chance as is in that, and the same at every look.
_UUID, _SERIAL = UUID("4f7ab6a5-19c3-4a0c-9b6b-1b5a5d5b8d51"), UUID("b0c8e1c4-3d5e-4a86-9f5f-0c3f0f5f6f52")
_DEFAULT_GRACE_SECONDS = 30
# Labels that are reserved, requests for volumes that have to be possible, and volumes that come by a request alone.
_RESERVED_RULES = ("kubevirt/V83", "kubevirt/V105", "kubevirt/V112")
_RESERVED_LABELS = frozenset(running.RESERVED_LABELS)
# Kinds of which some parts are written by KubeVirt's controllers alone.
RESERVED = (("kubevirt.io", "VirtualMachine"), ("kubevirt.io", "VirtualMachineInstance"))


class _ReservedStrategy(GatedStrategy):
    """Rules that hold for everybody but KubeVirt's controllers."""

    def __init__(self, kind: Kind, settings: AdmissionSettings) -> None:
        self._kind = kind
        self._settings = settings

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """Yield a finding for each change that is reserved for controllers."""
        if is_trusted(context):
            return
        if _says_reserved(new):
            yield from (each for each in self._reserved(new, old) if old is None or not _untouched(each, new, old))
        if old is not None:
            value, before = from_data(new, self._kind.cls), from_data(old, self._kind.cls)
            for transition in self._kind.transitions:
                yield from transition.check(before, value, self._settings)

    def _reserved(self, new: Data, old: Data | None) -> Iterator[Finding]:
        # A UID says that the object is stored already, which one that is being made is not.
        metadata = {key: each for key, each in new["metadata"].items() if key != "uid" or old is not None}
        value = from_data({**new, "metadata": metadata}, self._kind.cls)
        for rule in self._kind.rules:
            if rule.id in _RESERVED_RULES:
                yield from rule.check(value, self._settings)


def _says_reserved(new: Data) -> bool:
    """Return whether an object has what reserved rules are about. Few have, and only for these the rules are run."""
    template = _template(new)
    metadata = (new["metadata"], (template or {}).get("metadata") or {})
    labels = (label for each in metadata for label in each.get("labels") or ())
    spec = (template or new).get("spec") or {}
    return not _RESERVED_LABELS.isdisjoint(labels) or bool((new.get("status") or {}).get("volumeRequests") or spec.get("utilityVolumes"))


class MachineStrategy(_ReservedStrategy):
    """A machine gets an identity when it is made, and its instancetype and preference are looked up whenever it changes."""

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """Names, annotations, the finalizer: everything that would otherwise be a write of its own right after."""
        metadata = new["metadata"]
        hold(new, FINALIZER)
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **OBSERVED}
        if isinstance(given := (new.get("spec") or {}).get("template"), dict):
            given.setdefault("spec", {}).setdefault("domain", {})
        template = _template(new)
        if template is None:
            return new
        preference = self._name_sizes(new, context)
        self._identify(template["spec"], metadata.get("uid", ""))
        self._say_machine(template["spec"], preference)
        around = template["metadata"] = template.get("metadata") or {}
        _say_topology(around, template["spec"])
        _choose_class(new["spec"], preference)
        return new

    def prepare_update(self, new: Data, old: Data, context: WriteContext) -> Data:
        """A matcher that is new is completed as at creation."""
        if _template(new) is not None and any(new["spec"].get(each) != old["spec"].get(each) for each in instancetypes.KINDS):
            self._name_sizes(new, context)
        return new

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """Instancetype and preference agree with what the machine says (V15, V16); one that does not exist is a warning."""
        yield from super().validate(new, old, context)
        yield from _same_addresses(new, old, context.view)
        if old is not None:
            yield from _dead_templates(new, old, context.view)
        spec = new.get("spec") or {}
        if not any(spec.get(member) for member in instancetypes.KINDS):
            return
        if old is not None and spec == old.get("spec"):
            return
        machine = from_data(new, VirtualMachine)
        place = MachinePlace(spec=machine.spec, path=("spec",), namespace=machine.metadata.namespace, settings=self._settings)
        yield from size_findings(place, context.view, new.get("status"))

    def grace_seconds(self, old: Data, asked: int | None) -> int:
        """Without a wish of its own, a deletion leaves the guest what the template says."""
        return asked if asked is not None else grace_of((_template(old) or {}).get("spec") or {})

    def _name_sizes(self, new: Data, context: WriteContext) -> Data:
        """Complete the matchers, in place; returns what the preference says."""
        spec, namespace = new["spec"], new["metadata"].get("namespace", "")
        lookup = looking(context.view)
        for member in instancetypes.KINDS:
            matcher = spec.get(member)
            if not isinstance(matcher, dict):
                continue
            if matcher.get("inferFromVolume") and not matcher.get("name"):
                self._infer(new, member, lookup)
            elif matcher.get("name") and not matcher.get("kind"):
                spec[member] = {**matcher, "kind": instancetypes.KINDS[member][0]}
        try:
            found = instancetypes.find(instancetypes.PREFERENCE, spec, namespace, lookup, new.get("status"))
        except instancetypes.MissingInstancetype:
            # `validate` warns of it.
            return {}
        return found.spec if found is not None else {}

    def _infer(self, new: Data, member: str, find: instancetypes.Find) -> None:
        spec = new["spec"]
        try:
            matcher = instancetypes.inferred(member, spec, new["metadata"].get("namespace", ""), find)
        except instancetypes.MissingInstancetype as missing:
            wrong = _not_found(("spec", member, "inferFromVolume"), missing.why)
            raise denials.denial("virtualmachines-mutator.kubevirt.io", [wrong]) from None
        if matcher is None:
            del spec[member]
            return
        if member == instancetypes.INSTANCETYPE and spec[member].get("inferFromVolumeFailurePolicy") == "Ignore":
            # `virtctl create vm` writes both: memory for the case that nothing can be inferred.
            (_template(new) or {}).get("spec", {}).get("domain", {}).pop("memory", None)
        spec[member] = matcher

    def _identify(self, hardware: Data, uid: str) -> None:
        firmware = hardware.setdefault("domain", {}).get("firmware")
        firmware = hardware["domain"]["firmware"] = dict(firmware or {})
        if not firmware.get("uuid"):
            firmware["uuid"] = str(uuid5(_UUID, uid))
        if not firmware.get("serial"):
            firmware["serial"] = str(uuid5(_SERIAL, uid))

    def _say_machine(self, hardware: Data, preference: Data) -> None:
        if not hardware.get("architecture"):
            hardware["architecture"] = preference.get("preferredArchitecture") or self._settings.architecture
        domain = hardware["domain"]
        if not (domain.get("machine") or {}).get("type"):
            preferred = (preference.get("machine") or {}).get("preferredMachineType")
            default = defaults.MACHINE_TYPES.get(hardware["architecture"])
            if preferred or default:
                domain["machine"] = {"type": preferred or default}


class InstanceStrategy(_ReservedStrategy):
    """A running machine begins as Pending. Its status stands in the object itself, and only controllers write it."""

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """The first phase, and who has to agree before it goes."""
        metadata = new["metadata"]
        hold(new, FOREGROUND)
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **OBSERVED}
        self._preset(new, context)
        self._complete(new, context)
        _complete_identity(new)
        given = (new.get("status") or {}) if is_trusted(context) else {}
        began = [{"phase": "Pending", "phaseTransitionTimestamp": context.now}]
        new["status"] = {**given, "phase": "Pending", "phaseTransitionTimestamps": began}
        return new

    def prepare_update(self, new: Data, old: Data, context: WriteContext) -> Data:
        """Ignore users' changes of the status without a finding, as upstream does."""
        if is_trusted(context):
            if new.get("spec") != old.get("spec"):
                self._complete(new, context)
        else:
            new.pop("status", None)
            if "status" in old:
                new["status"] = old["status"]
        return new

    def _preset(self, new: Data, context: WriteContext) -> None:
        """Presets of the namespace, in place."""
        found = list(context.view.list("virtualmachineinstancepresets.kubevirt.io", new["metadata"].get("namespace", "")))
        spec = new.get("spec")
        if not found or not isinstance(spec, dict) or not isinstance(spec.get("domain"), dict):
            return
        known = ((from_data(each, VirtualMachineInstancePreset), (each.get("spec") or {}).get("domain") or {}) for each in found)
        made = presets.applied(new["metadata"], spec["domain"], known)
        if made.wrong:
            raise denials.denial("virtualmachineinstances-mutator.kubevirt.io", made.wrong)
        spec["domain"] = made.domain
        new["metadata"]["annotations"] = {**new["metadata"]["annotations"], **made.annotations}
        context.said.extend(made.warnings)

    def _complete(self, new: Data, context: WriteContext) -> None:
        """Defaults, in place: whoever looks at an instance finds everything said."""
        try:
            installed = context.view.get("kubevirts.kubevirt.io", "kubevirt", "kubevirt")
            configuration = from_data(installed, KubeVirt).spec.configuration if installed is not None else None
            spec = from_data(new.get("spec") or {}, instances.VirtualMachineInstanceSpec)
            host = defaults.installation(configuration, self._settings.architecture)
            host = msgspec.structs.replace(host, binds_bare_interfaces=is_trusted(context))
            new["spec"] = to_data(defaults.defaulted(spec, host))
        except (msgspec.ValidationError, PaddockError):
            # What cannot be read is refused by the schema or a rule, with everything else that is wrong.
            return

    def grace_seconds(self, old: Data, asked: int | None) -> int:
        """Without a wish of its own, a deletion leaves the guest what the spec says."""
        return asked if asked is not None else grace_of(old.get("spec") or {})


def _complete_identity(instance: Data) -> None:
    """Set, in place, what the guest reads of itself, and how its PCI bus is laid out."""
    hardware, metadata = instance.get("spec"), instance["metadata"]
    if not isinstance(hardware, dict) or not isinstance(hardware.get("domain"), dict):
        return
    firmware = hardware["domain"]["firmware"] = dict(hardware["domain"].get("firmware") or {})
    if not firmware.get("uuid"):
        firmware["uuid"] = str(uuid5(_UUID, metadata.get("uid", "")))
    _say_topology(metadata, hardware)


def _say_topology(metadata: Data, hardware: Data) -> None:
    """Note, in place, the layout of the PCI bus of a machine that has one and says nothing of it."""
    kind = ((hardware.get("domain") or {}).get("machine") or {}).get("type") or ""
    if defaults.has_pcie(hardware.get("architecture") or "", kind):
        metadata["annotations"] = {_TOPOLOGY_VERSION: "v3", **(metadata.get("annotations") or {})}


def _same_addresses(new: Data, old: Data | None, view: ObjectView) -> Iterator[Finding]:
    """Cards whose address another machine of the namespace has on the same network (warnings)."""
    own = macs.cards(new)
    if not own or (old is not None and own == macs.cards(old)):
        return
    namespace, name = new["metadata"].get("namespace", ""), new["metadata"].get("name", "")
    for interface in own:
        holders = view.holders("virtualmachines.kubevirt.io", _wired, (namespace, interface.network, interface.address), _WiredMachine)
        # Two are enough for the sentence, however many there are.
        others = list(islice((each for _, each in holders if each != name), 2))
        if others:
            yield finding.warning(interface.path, macs.message(*others), macs.RULE)


class _WiredDevices(TypedDict, total=False):
    interfaces: list[Data]


class _WiredDomain(TypedDict, total=False):
    devices: _WiredDevices


class _WiredHardware(TypedDict, total=False):
    networks: list[Data]
    domain: _WiredDomain


class _WiredTemplate(TypedDict, total=False):
    spec: _WiredHardware


class _WiredSpec(TypedDict, total=False):
    template: _WiredTemplate


class _WiredMetadata(TypedDict, total=False):
    namespace: str


class _WiredMachine(TypedDict, total=False):
    """The members of a VirtualMachine that `_wired` reads."""

    metadata: _WiredMetadata
    spec: _WiredSpec


def _wired(machine: Data) -> Iterator[tuple[str, str, str]]:
    """Yield the addresses of a machine with their networks and its namespace."""
    namespace = machine["metadata"].get("namespace", "")
    return ((namespace, interface.network, interface.address) for interface in macs.cards(machine))


def _dead_templates(new: Data, old: Data, view: ObjectView) -> Iterator[Finding]:
    """Edits of a template whose DataVolume is made already have no effect on it (warnings)."""
    before = {_name_of(each): each.get("spec") for each in (old.get("spec") or {}).get("dataVolumeTemplates") or ()}
    for index, each in enumerate((new.get("spec") or {}).get("dataVolumeTemplates") or ()):
        name, was = _name_of(each), before.get(_name_of(each))
        if was is None or was == each.get("spec"):
            continue
        if view.get("datavolumes.cdi.kubevirt.io", new["metadata"].get("namespace", ""), name) is not None:
            text = f"has no effect: the DataVolume {name} is there already; to grow the disk, let the claim {name} ask for more"
            yield finding.warning(("spec", "dataVolumeTemplates", index, "spec"), text, "kubevirt/dead-template")


def _name_of(template: Data) -> str:
    return str((template.get("metadata") or {}).get("name") or "")


def grace_of(hardware: Data) -> int:
    """Return the seconds that a guest has to shut down."""
    given = hardware.get("terminationGracePeriodSeconds")
    return given if isinstance(given, int) else _DEFAULT_GRACE_SECONDS


def looking(view: ObjectView) -> instancetypes.Find:
    """Return a function that finds instancetypes, and the objects they are inferred from, in the store."""
    return lambda resource, namespace, name: view.get(resource, namespace, name)


def size_findings(machine_place: MachinePlace, view: ObjectView, status: Data | None = None) -> Iterator[Finding]:
    """Yield the conflicts between a machine and the instancetype and preference it names (V15, V16)."""
    found: dict[str, Any] = {}
    spec, namespace = machine_place.spec, machine_place.namespace or ""
    for member, cls in ((instancetypes.INSTANCETYPE, InstancetypeSpec), (instancetypes.PREFERENCE, PreferenceSpec)):
        written = {member: msgspec.to_builtins(getattr(spec, member))}
        try:
            named = instancetypes.find(member, written, namespace, looking(view), status)
        except instancetypes.MissingInstancetype as missing:
            # It may be made later: KubeVirt keeps such a machine, which says in its status what it waits for.
            yield finding.warning(machine_place.at(member), f"{missing.why}; the machine starts when it is there", "kubevirt/instancetype")
            continue
        if named is not None:
            found[member] = from_data(named.spec, cls)
    size, preference = found.get(instancetypes.INSTANCETYPE), found.get(instancetypes.PREFERENCE)
    if size is not None:
        yield from sizing.conflicts(machine_place, size)
    # Without its instancetype it is not known how large the machine is.
    if preference is not None and (size is not None or spec.instancetype is None):
        yield from sizing.unmet(machine_place, preference, size)


def _not_found(path: Path, why: str) -> Finding:
    return Finding(path=path, message=f"Not found: {why}", rule="kubevirt/instancetype", cause=CauseType.NOT_FOUND)


def _untouched(finding: Finding, new: Data, old: Data) -> bool:
    return bool(fieldpath.value_at(new, finding.path) == fieldpath.value_at(old, finding.path))


def _template(data: Data) -> Data | None:
    """The template of a machine, where it is whole enough to be completed."""
    template = (data.get("spec") or {}).get("template")
    if isinstance(template, dict) and isinstance(template.get("spec"), dict):
        return template
    return None


def _choose_class(spec: Data, preference: Data) -> None:
    """Disks that name no StorageClass get the preferred one."""
    preferred = (preference.get("volumes") or {}).get("preferredStorageClassName")
    for each in (spec.get("dataVolumeTemplates") or ()) if preferred else ():
        for form in ("pvc", "storage"):
            claim = (each.get("spec") or {}).get(form)
            if isinstance(claim, dict) and not claim.get("storageClassName"):
                claim["storageClassName"] = preferred


def strategies(settings: AdmissionSettings) -> dict[tuple[str, str], CustomStrategy]:
    """The strategies of machines and running machines, by group and kind. Where no controllers are, they are plain objects."""
    if not settings.controllers:
        return {}
    (machine,), (instance,), (replicas,) = virtualmachine.KINDS, instances.KINDS, replicaset.KINDS
    return {
        (replicas.group, replicas.kind): GatedStrategy(),
        (machine.group, machine.kind): MachineStrategy(machine, settings),
        (instance.group, instance.kind): InstanceStrategy(instance, settings),
    }
