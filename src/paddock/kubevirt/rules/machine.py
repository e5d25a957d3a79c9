"""All rules about a machine that may be stopped: V2, V3, V17, V118, its templates and its hardware."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import CauseType, Finding
from paddock.kubernetes.schema.kind import AdmissionSettings, Cel, rule, transition
from paddock.kubevirt.rules import hotplug, instance, sizing, templates
from paddock.kubevirt.rules.place import HardwareContext, MachinePlace, check, rules_of

if TYPE_CHECKING:
    from paddock.kubevirt.kinds.virtualmachine import VirtualMachine

# Annotations about the network, which act on the running machine only.
NETWORK_ANNOTATIONS = ("k8s.v1.cni.cncf.io/networks", "ovn.kubernetes.io/logical_switch", "ovn.kubernetes.io/ip_address")
_RECEIVERS = "DecentralizedLiveMigration"


@check(
    "kubevirt/V2",
    Cel("", "!has(self.running) || !has(self.runStrategy)", "running and runStrategy are mutually exclusive", ".running"),
    given=("spec.running",),
)
def running_is_said_once(machine_place: MachinePlace) -> Iterator[Finding]:
    """`running` and `runStrategy` are mutually exclusive."""
    if machine_place.spec.running is not None and machine_place.spec.runStrategy is not None:
        message = "Forbidden: running is set too, choose one: running and runStrategy are mutually exclusive"
        yield Finding(path=machine_place.at("running"), message=message, rule="kubevirt/V2")


@check(
    "kubevirt/V3",
    Cel("", "has(self.running) || has(self.runStrategy)", "RunStrategy must be specified", ".running", "FieldValueRequired"),
)
def running_is_said(machine_place: MachinePlace) -> Iterator[Finding]:
    """A machine says when it runs."""
    if machine_place.spec.running is None and machine_place.spec.runStrategy is None:
        why = "RunStrategy must be specified: give runStrategy, such as Always or Halted"
        yield Finding(
            path=machine_place.at("running"),
            message=f"Required value: {why}",
            rule="kubevirt/V3",
            cause=CauseType.REQUIRED,
            at=machine_place.path,
        )


@check("kubevirt/V118", given=("spec.runStrategy",))
def receivers_need_a_gate(machine_place: MachinePlace) -> Iterator[Finding]:
    """A machine waits for one of another cluster only where such migrations are turned on."""
    if machine_place.spec.runStrategy == "WaitAsReceiver" and _RECEIVERS not in machine_place.settings.gates:
        why = f"Invalid RunStrategy (WaitAsReceiver), {_RECEIVERS} feature gate is not enabled; use Halted"
        yield finding.invalid(machine_place.at("runStrategy"), "WaitAsReceiver", why, "kubevirt/V118")


CHECKS = (running_is_said_once, running_is_said, receivers_need_a_gate, *templates.CHECKS, *sizing.CHECKS)


def _place(machine: "VirtualMachine", settings: AdmissionSettings) -> MachinePlace:
    return MachinePlace(spec=machine.spec, path=("spec",), namespace=machine.metadata.namespace, settings=settings)


def _hardware(machine: "VirtualMachine", settings: AdmissionSettings) -> HardwareContext:
    return _place(machine, settings).hardware


@rule("kubevirt/long-name")
def names_fit_into_labels(machine: "VirtualMachine", settings: AdmissionSettings) -> Iterator[Finding]:
    """A name that does not fit into a label is cut and hashed there (a warning)."""
    if len(machine.metadata.name) > 63:
        text = "longer than 63 characters: labels carry a hash of it, so selectors by name do not work"
        yield finding.warning(("metadata", "name"), text, "kubevirt/long-name")


@rule("kubevirt/annotation-place", given=(f"metadata.annotations{{{each}}}" for each in NETWORK_ANNOTATIONS))
def annotations_reach_the_guest(machine: "VirtualMachine", settings: AdmissionSettings) -> Iterator[Finding]:
    """Annotations about the network act on the template's metadata only (a warning)."""
    template = machine.spec.template.metadata
    given = (template.annotations if template is not None else None) or {}
    for annotation in NETWORK_ANNOTATIONS:
        if annotation in (machine.metadata.annotations or {}) and annotation not in given:
            text = "has no effect here; put it into spec.template.metadata.annotations"
            yield finding.warning(("metadata", "annotations", annotation), text, "kubevirt/annotation-place")


@transition("kubevirt/V17")
def spec_stays_during_snapshots(old: "VirtualMachine", new: "VirtualMachine", settings: AdmissionSettings) -> Iterator[Finding]:
    """While a snapshot or a restore of the machine is in progress, its spec stays."""
    status = old.status
    if status is None or settings.trusted or to_data(old.spec) == to_data(new.spec):
        return
    for what, name in (("snapshot", status.snapshotInProgress), ("restore", status.restoreInProgress)):
        if name:
            why = f"the spec cannot be changed until {what} {name} completes"
            yield finding.forbidden(("spec",), why, "kubevirt/V17")


RULES = (
    *rules_of(CHECKS, _place, "spec"),
    *rules_of(instance.CHECKS, _hardware, "spec.template.spec"),
    names_fit_into_labels,
    annotations_reach_the_guest,
    hotplug.volume_requests_are_possible,
)
TRANSITIONS = (spec_stays_during_snapshots,)
