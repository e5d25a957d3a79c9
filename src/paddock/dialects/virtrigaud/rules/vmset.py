"""The rules of VirtRigaud's VMSet: those of its machines, and its own."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from paddock.dialects.virtrigaud.rules import machine
from paddock.kubernetes.meta import selectors
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.schema.kind import AdmissionSettings, Cel, rule

if TYPE_CHECKING:
    from paddock.dialects.virtrigaud.kinds.vmset import VMSet

SELECTOR: Path = ("spec", "selector")
LABELS: Path = ("spec", "template", "metadata", "labels")
MATCH = "virtrigaud/set-selector"
ROLLING = "virtrigaud/rolling-update"
_CLAIMS = "virtrigaud/claim-template"
_NAMES = "virtrigaud/template-name"


@rule(MATCH)
def selector_matches_template(vmset: "VMSet", settings: AdmissionSettings) -> Iterator[Finding]:
    """The selector is not empty, and the labels of the template match it."""
    selector = vmset.spec.selector
    yield from selectors.selector_findings(selector, SELECTOR, MATCH)
    metadata = vmset.spec.template.metadata
    labels = (metadata.labels if metadata is not None else None) or {}
    if selectors.is_empty(selector):
        why = "an empty selector would take in every machine of the namespace"
        yield finding.required(SELECTOR, MATCH, why)
    elif not selectors.matches(selector, labels):
        why = f"do not match the selector {selectors.text(selector)}"
        yield finding.invalid(LABELS, labels, why, MATCH)


@rule(
    ROLLING,
    Cel(
        "spec.updateStrategy.rollingUpdate",
        "!((self.maxUnavailable == 0 || self.maxUnavailable == '0%') && (self.maxSurge == 0 || self.maxSurge == '0%'))",
        "must not be 0 when maxSurge is 0",
        ".maxUnavailable",
    ),
)
def updates_can_go_on(vmset: "VMSet", settings: AdmissionSettings) -> Iterator[Finding]:
    """A rolling update may miss a machine or have one too many; with neither it could never begin."""
    strategy = vmset.spec.updateStrategy
    if strategy is None or strategy.rollingUpdate is None:
        return
    rolling = strategy.rollingUpdate
    if rolling.maxUnavailable in (0, "0%") and rolling.maxSurge in (0, "0%"):
        path = ("spec", "updateStrategy", "rollingUpdate", "maxUnavailable")
        yield finding.invalid(path, rolling.maxUnavailable, "must not be 0 when maxSurge is 0", ROLLING)
    if strategy.type != "RollingUpdate":
        text = f'has no effect with type "{strategy.type}"'
        yield finding.warning(("spec", "updateStrategy", "rollingUpdate"), text, ROLLING)


@rule(_CLAIMS)
def claim_templates_have_names(vmset: "VMSet", settings: AdmissionSettings) -> Iterator[Finding]:
    """Each claim template has a name of its own."""
    seen = set()
    for index, template in enumerate(vmset.spec.volumeClaimTemplates or ()):
        name = template.metadata.name if template.metadata is not None else None
        path = ("spec", "volumeClaimTemplates", index, "metadata", "name")
        if not name:
            yield finding.required(path, _CLAIMS, "the claims of the machines are named after it")
        elif name in seen:
            yield finding.duplicate(path, name, _CLAIMS)
        seen.add(name)


@rule(_NAMES)
def templates_have_no_names(vmset: "VMSet", settings: AdmissionSettings) -> Iterator[Finding]:
    """Machines have their names and their namespace from the set (a warning)."""
    for member in ("name", "namespace"):
        if vmset.spec.template.metadata is not None and getattr(vmset.spec.template.metadata, member):
            text = f"has no effect: the machines have their {member} from the set"
            yield finding.warning(("spec", "template", "metadata", member), text, _NAMES)


RULES = (
    *machine.rules_at("spec.template.spec", lambda vmset: vmset.spec.template.spec),
    selector_matches_template,
    updates_can_go_on,
    claim_templates_have_names,
    templates_have_no_names,
)
