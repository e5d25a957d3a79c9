"""The rules of a pool (docs/spec/kubermatic.md 1.4, docs/spec/kubevirt.md 1.4 and 6).

The rules of its machine are those of a VirtualMachine, told at the places the user wrote: a flat pool gets flat paths.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from paddock.kubernetes.meta import selectors
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.schema.kind import AdmissionSettings, Cel, rule, transition
from paddock.kubevirt.kinds import poolform
from paddock.kubevirt.rules import instance, machine
from paddock.kubevirt.rules.place import HardwareContext, MachinePlace, rules_of

if TYPE_CHECKING:
    from paddock.kubevirt.kinds.pool import VirtualMachinePool

# A name of 63 characters still has room for the largest number that anybody will reach.
LONGEST_NAME = 57
_STRATEGIES = ("unmanaged", "opportunistic", "proactive")
_AT_MOST_ONE = "set at most one of unmanaged, opportunistic, proactive"
_COUNT = " + ".join(f"(has(self.{name}) ? 1 : 0)" for name in _STRATEGIES)


def place_of(pool: "VirtualMachinePool", settings: AdmissionSettings) -> MachinePlace:
    """The machine of a pool, at the places the user wrote."""
    return MachinePlace(
        spec=poolform.machine_spec(pool),
        path=poolform.MACHINE,
        namespace=pool.metadata.namespace,
        settings=settings,
        hardware_path=poolform.hardware_path(pool),
        metadata_path=poolform.instance_metadata_path(pool),
    )


class _Places:
    """The places of the last pool: every rule asks for them, one after the other."""

    def __init__(self) -> None:
        self._last: tuple[object, object, MachinePlace, HardwareContext] | None = None

    def of(self, pool: "VirtualMachinePool", settings: AdmissionSettings) -> tuple[MachinePlace, HardwareContext]:
        last = self._last
        if last is None or last[0] is not pool or last[1] is not settings:
            around = place_of(pool, settings)
            last = self._last = (pool, settings, around, around.hardware)
        return last[2], last[3]


_PLACES = _Places()


def _around(pool: "VirtualMachinePool", settings: AdmissionSettings) -> MachinePlace:
    return _PLACES.of(pool, settings)[0]


def _hardware(pool: "VirtualMachinePool", settings: AdmissionSettings) -> HardwareContext:
    return _PLACES.of(pool, settings)[1]


@rule(
    "kubevirt/pool-name",
    Cel("", "self.metadata.name.size() <= 57", "must be no more than 57 characters", ".metadata.name"),
)
def names_leave_room(pool: "VirtualMachinePool", settings: AdmissionSettings) -> Iterator[Finding]:
    """The machines are named `<pool>-<number>`, so the name of a pool has at most 57 characters."""
    if len(pool.metadata.name) > LONGEST_NAME:
        why = f"must be no more than {LONGEST_NAME} characters, because the machines are named <name>-<number>"
        yield finding.invalid(("metadata", "name"), pool.metadata.name, why, "kubevirt/pool-name")


@rule("kubevirt/pool-form")
def one_form_is_used(pool: "VirtualMachinePool", settings: AdmissionSettings) -> Iterator[Finding]:
    """The machine is written nested, with `template`, or flat, with the hardware beside `runStrategy`; never both."""
    spec = pool.spec.virtualMachineTemplate.spec
    flat = poolform.flat_keys(spec)
    if spec.template is not None and flat:
        names = ", ".join(flat)
        message = f'Invalid value: use either "template" or the flat form; template is given, and {names} beside it'
        yield Finding(path=poolform.MACHINE, message=message, rule="kubevirt/pool-form", at=(*poolform.MACHINE, flat[0]))
    elif spec.template is None and not flat:
        yield finding.required((*poolform.MACHINE, "template"), "kubevirt/pool-form", "missing virtual machine template")
    elif spec.template is None and spec.domain is None:
        yield finding.required((*poolform.MACHINE, "domain"), "kubevirt/pool-form")


@rule(
    "kubevirt/pool-selector",
    Cel(
        "spec.selector",
        "(has(self.matchLabels) && self.matchLabels.size() > 0) || (has(self.matchExpressions) && self.matchExpressions.size() > 0)",
        "selector must not be empty",
    ),
)
def selector_matches_machines(pool: "VirtualMachinePool", settings: AdmissionSettings) -> Iterator[Finding]:
    """The selector is not empty, and it matches the labels of the machines."""
    spec, path = pool.spec, ("spec", "selector")
    labels = spec.virtualMachineTemplate.metadata.labels if spec.virtualMachineTemplate.metadata else None
    yield from selectors.selector_findings(spec.selector, path, "kubevirt/pool-selector")
    if selectors.is_empty(spec.selector):
        yield Finding(path=path, message="Invalid value: selector must not be empty", rule="kubevirt/pool-selector")
    elif not selectors.matches(spec.selector, labels or {}):
        why = "does not match virtualMachineTemplate.metadata.labels"
        yield finding.invalid(path, selectors.text(spec.selector), why, "kubevirt/pool-selector", "selector does not match labels.")


@rule(
    "kubevirt/pool-strategy",
    Cel("spec.updateStrategy", f"{_COUNT} <= 1", _AT_MOST_ONE),
    Cel("spec.scaleInStrategy", f"{_COUNT} <= 1", _AT_MOST_ONE),
)
def one_strategy_is_set(pool: "VirtualMachinePool", settings: AdmissionSettings) -> Iterator[Finding]:
    """There is one way to update and one to get smaller; selectors of machines are usable."""
    for name in ("updateStrategy", "scaleInStrategy"):
        strategy = getattr(pool.spec, name)
        given = [each for each in _STRATEGIES if strategy is not None and getattr(strategy, each) is not None]
        path: Path = ("spec", name)
        if len(given) > 1:
            yield finding.invalid(path, given, _AT_MOST_ONE, "kubevirt/pool-strategy")
        policy = getattr(strategy.proactive, "selectionPolicy", None) if strategy is not None else None
        if policy is not None and policy.selectors is not None:
            place = (*path, "proactive", "selectionPolicy", "selectors", "labelSelector")
            yield from selectors.selector_findings(policy.selectors.labelSelector, place, "kubevirt/pool-strategy")


@rule("kubevirt/pool-state")
def state_can_be_kept(pool: "VirtualMachinePool", settings: AdmissionSettings) -> Iterator[Finding]:
    """Memory of a machine that goes is not kept by Paddock's own engine."""
    strategy = pool.spec.scaleInStrategy
    if strategy is None or settings.target != "embedded":
        return
    for name in ("opportunistic", "proactive"):
        way = getattr(strategy, name)
        if way is not None and way.statePreservation == "Online":
            path = ("spec", "scaleInStrategy", name, "statePreservation")
            why = "not supported: the engine keeps disks, not memory; use Offline"
            yield finding.invalid(path, "Online", why, "kubevirt/pool-state")


@rule("kubevirt/pool-annotation-place")
def annotations_reach_the_guest(pool: "VirtualMachinePool", settings: AdmissionSettings) -> Iterator[Finding]:
    """Annotations about the network act on the running machine's metadata only (a warning)."""
    flat = poolform.is_flat(pool)
    around = pool.spec.virtualMachineTemplate.metadata
    template = poolform.machine_spec(pool).template.metadata
    reaching = (template.annotations if template is not None else None) or {}
    right = "spec.virtualMachineTemplate.metadata" if flat else "spec.virtualMachineTemplate.spec.template.metadata"
    places: tuple[tuple[Path, dict[str, str]], ...] = (
        (("metadata", "annotations"), pool.metadata.annotations or {}),
        ((*poolform.TEMPLATE, "metadata", "annotations"), (around.annotations if around is not None else None) or {}),
    )
    for path, annotations in places:
        for annotation in machine.NETWORK_ANNOTATIONS:
            if annotation in annotations and annotation not in reaching:
                text = f"has no effect here; put it into {right}.annotations"
                yield finding.warning((*path, annotation), text, "kubevirt/pool-annotation-place")


@transition("kubevirt/pool-change", Cel("spec.selector", "self == oldSelf", "field is immutable"))
def selector_stays(old: "VirtualMachinePool", new: "VirtualMachinePool", settings: AdmissionSettings) -> Iterator[Finding]:
    """The selector does not change: it says whose the machines are."""
    if old.spec.selector != new.spec.selector:
        message = "Invalid value: field is immutable"
        yield Finding(path=("spec", "selector"), message=message, rule="kubevirt/pool-change")


RULES = (
    names_leave_room,
    one_form_is_used,
    selector_matches_machines,
    one_strategy_is_set,
    state_can_be_kept,
    annotations_reach_the_guest,
    *rules_of(machine.CHECKS, _around, "spec.virtualMachineTemplate.spec"),
    *rules_of(instance.CHECKS, _hardware, "spec.virtualMachineTemplate.spec.template.spec"),
)
TRANSITIONS = (selector_stays,)
