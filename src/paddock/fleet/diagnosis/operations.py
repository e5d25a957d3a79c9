"""Causes that lie with what is done to machines: snapshots, restores, clones, exports, series of machines, Services."""

from collections.abc import Iterator, Mapping

from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.links import ENDPOINTS, POOLS, SERVICE
from paddock.fleet.diagnosis.rule import CauseDepth, Diagnosis, DiagnosisRule, Evidence, Look, RuleView
from paddock.fleet.diagnosis.scene import at, entries
from paddock.kubevirt.plan.changes.references import INSTANCE, SNAPSHOT


def _crash_consistent(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    node = view.start
    listed = at(node.data, "status", "indications") or ()
    if node.ref.id == SNAPSHOT and "NoGuestAgent" in listed:
        yield rule.found(node, rank=CauseDepth.SAID, seen=Evidence("status.indications", "NoGuestAgent"))


def _paused(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    for node in view.nodes:
        if node.ref.id in POOLS and at(node.data, "spec", "paused"):
            change = '{"spec":{"paused":false}}'
            fix = f"kubectl patch {node.ref.kind.lower()} {node.ref.name} -n {node.ref.namespace} --type merge -p '{change}'"
            yield rule.found(node, fix=fix, rank=CauseDepth.SAID, seen=Evidence("spec.paused", "true"))


def _no_backend(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    """A Service that leads to nobody."""
    for node in view.nodes:
        if node.ref.id != SERVICE or node.data is None or not at(node.data, "spec", "selector"):
            continue
        ends = next((each.data for each in view.nodes if each.ref.id == ENDPOINTS and each.ref.name == node.ref.name), None)
        if ends is None or _addresses(ends):
            continue
        behind = [each for each in view.nodes if each.above is node and each.ref.id == INSTANCE]
        labels = ",".join(f"{key}={value}" for key, value in sorted(at(node.data, "spec", "selector").items()))
        if behind:
            cause = f"The machine behind Service {node.ref.name} ({behind[0].ref.name}) is not ready."
        else:
            cause = f"No running machine has the labels that Service {node.ref.name} selects: {labels}."
        yield rule.found(node, cause, rank=CauseDepth.VAGUE if behind else CauseDepth.SAID, seen=Evidence("spec.selector", labels))


def _addresses(data: Data) -> bool:
    return any(entries(each, "addresses") for each in entries(data, "subsets"))


LOOKS: Mapping[str, Look] = {
    "snapshot-without-agent": _crash_consistent,
    "series-paused": _paused,
    "service-without-machine": _no_backend,
}
