"""The way of one document through its declaration: kind, schema, conversion, rules. Everything wrong with it in one answer."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import msgspec

from paddock.base.nearest import nearest
from paddock.kubernetes import catalog
from paddock.kubernetes.meta.wire import from_data
from paddock.kubernetes.schema import check as schema_check
from paddock.kubernetes.schema import finding, messages
from paddock.kubernetes.schema.field import Object
from paddock.kubernetes.schema.finding import Finding, Severity
from paddock.kubernetes.schema.kind import AdmissionSettings, Kind
from paddock.kubernetes.schema.ruling import rules_of

KIND = "object/kind"
NAME = "object/name"


class AdmissionResult(msgspec.Struct, frozen=True):
    """The result of admission. `value` and `data` are complete only when `accepted`."""

    kind: Kind | None
    value: Object | None
    data: dict[str, Any]
    findings: tuple[Finding, ...]

    @property
    def accepted(self) -> bool:
        """True when no error forbids storing the object."""
        return not any(found.severity is Severity.ERROR for found in self.findings)


def split_api_version(api_version: Any) -> tuple[str, str]:
    """`group/version` -> (group, version); the core group is empty."""
    group, _, version = str(api_version).rpartition("/")
    return group, version


class FieldValidation(StrEnum):
    """The treatment of unknown fields: the `fieldValidation` of an API request. They are pruned in every case."""

    STRICT = "Strict"
    WARN = "Warn"
    IGNORE = "Ignore"


def admit(raw: dict[str, Any], settings: AdmissionSettings, unknown: FieldValidation = FieldValidation.STRICT) -> AdmissionResult:
    """Hold a new object against everything that is declared of its kind."""
    kind, wrong = identify(raw)
    if kind is None:
        return AdmissionResult(None, None, raw, tuple(wrong))
    checked = schema_check.check(kind.cls, raw)
    read = [found for found in checked.findings if found.rule != messages.FRACTION or not kind.takes_fractions]
    value = from_data(checked.value, kind.cls)
    findings = [*wrong, *_weigh_unknown(read, unknown), *_name(checked.value)]
    # What could not be read is absent to the rules. It is wrong, not missing, and has its own finding.
    findings.extend(schema_check.drop_unread(rules_of(kind).findings(value, settings), read))
    return AdmissionResult(kind, value, checked.value, tuple(findings))


def admit_change(old: Object, new: AdmissionResult, settings: AdmissionSettings) -> AdmissionResult:
    """Hold a change of a stored object against the rules about changes, on top of what `admit` said of the new form."""
    if new.kind is None or new.value is None:
        return new
    findings = list(new.findings)
    for rule in new.kind.transitions:
        findings.extend(rule.check(old, new.value, settings))
    return msgspec.structs.replace(new, findings=tuple(findings))


def identify(raw: dict[str, Any]) -> tuple[Kind | None, list[Finding]]:
    """The kind a document says it is, and what is wrong with how it says so."""
    for key in ("apiVersion", "kind"):
        if not isinstance(raw.get(key), str) or not raw[key]:
            return None, [finding.required((key,), KIND)]
    group, version = split_api_version(raw["apiVersion"])
    kind = catalog.find(group, raw["kind"])
    if kind is None:
        return None, [_unknown_kind(raw, group)]
    if version in [served.name for served in kind.versions]:
        return kind, list(_deprecated(kind, version))
    served = [f"{group}/{each.name}" if group else each.name for each in kind.versions]
    return kind, [finding.unsupported(("apiVersion",), raw["apiVersion"], served, KIND)]


def _weigh_unknown(findings: list[Finding], unknown: FieldValidation) -> Iterator[Finding]:
    for found in findings:
        if found.rule != messages.UNKNOWN_FIELD or unknown is FieldValidation.STRICT:
            yield found
        elif unknown is FieldValidation.WARN:
            yield msgspec.structs.replace(found, severity=Severity.WARNING)


def _deprecated(kind: Kind, version: str) -> Iterator[Finding]:
    for served in kind.versions:
        if served.name == version and served.deprecated:
            yield finding.warning(("apiVersion",), served.deprecated, messages.DEPRECATED)


def _unknown_kind(raw: dict[str, Any], group: str) -> Finding:
    name = raw["kind"]
    groups = [known_group for known_group, known_kind in catalog.known() if known_kind == name]
    if groups:
        return finding.unsupported(("apiVersion",), raw["apiVersion"], sorted(groups), KIND, f"these groups have a {name}")
    meant = nearest(name, {kind for _, kind in catalog.known()})
    hint = f'did you mean "{meant}"?' if meant else "it is not one of Paddock's kinds"
    return finding.invalid(("kind",), name, f"unknown kind in group {group or 'core'}; {hint}", KIND)


def _name(data: dict[str, Any]) -> Iterator[Finding]:
    """Every stored object needs a name, or a prefix to make one from."""
    metadata = data.get("metadata")
    if isinstance(metadata, dict) and not metadata.get("name") and not metadata.get("generateName"):
        yield finding.required(("metadata", "name"), NAME, "name or generateName is required")
