"""Rules for a CustomResourceDefinition besides the types of its fields (docs/spec/kube-api.md sections 6.1 and 6.2)."""

import re
from collections.abc import Iterator
from typing import Any

from paddock.base.jsondata import Data
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.structural import rules
from paddock.kubernetes.schema.structural.embedded import LABEL_1035
from paddock.kubernetes.schema.structural.node import has_rules

RULE = "crd/definition"
APPROVAL = "api-approved.kubernetes.io"
MOST_SELECTABLE = 8
_LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?\Z", re.ASCII)
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+\Z", re.ASCII)
_PROTECTED = re.compile(r"(?:^|\.)(?:k8s|kubernetes)\.io\Z")
_MIXED = f"may have mixed case, but should otherwise match: {LABEL_1035}"
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_-]*)|\['([^']+)'\]")


def check(new: Data, old: Data | None) -> Iterator[Finding]:
    """Everything wrong with a definition."""
    spec = new.get("spec") or {}
    yield from _identity(new, spec)
    yield from _names(spec.get("names") or {})
    yield from _versions(spec, new.get("status") or {})
    yield from _conversion(spec.get("conversion") or {})
    for version, place, schema_place in _places(spec):
        yield from _version(version, place, schema_place, _former_schema(version, old))
    if old is not None:
        yield from _immutable(spec, old)


def _identity(new: Data, spec: Data) -> Iterator[Finding]:
    group, plural = spec.get("group") or "", (spec.get("names") or {}).get("plural") or ""
    name = new["metadata"].get("name", "")
    if name and name != f"{plural}.{group}":
        yield finding.invalid(("metadata", "name"), name, 'must be spec.names.plural+"."+spec.group', RULE)
    if not group:
        yield finding.required(("spec", "group"), RULE)
    elif _SUBDOMAIN.match(group) is None:
        yield finding.invalid(("spec", "group"), group, "should be a domain with at least one dot", RULE)
    annotations = new["metadata"].get("annotations") or {}
    if _PROTECTED.search(group):
        yield from _approval(annotations.get(APPROVAL))
    scope = spec.get("scope") or ""
    if not scope:
        yield finding.required(("spec", "scope"), RULE)
    elif scope not in ("Cluster", "Namespaced"):
        yield finding.unsupported(("spec", "scope"), scope, ("Cluster", "Namespaced"), RULE)
    if spec.get("preserveUnknownFields"):
        why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        yield finding.invalid(("spec", "preserveUnknownFields"), True, why, RULE)


def _approval(said: str | None) -> Iterator[Finding]:
    """Groups of Kubernetes itself are only for those who say that they may, or that they know they may not."""
    place = (f"metadata.annotations[{APPROVAL}]",)
    if not said:
        why = f'protected groups must have approval annotation "{APPROVAL}", see https://github.com/kubernetes/enhancements/pull/1111'
        yield finding.required(place, RULE, why)
    elif not said.startswith(("https://", "http://", "unapproved")):
        why = f'protected groups must have approval annotation "{APPROVAL}" with either a URL or a reason starting with "unapproved"'
        yield finding.invalid(place, said, why, RULE)


def _label(path: tuple[str | int, ...], text: str, *, mixed: bool = False) -> Iterator[Finding]:
    if not text:
        yield finding.required(path, RULE)
    elif _LABEL.match(text.lower() if mixed else text) is None:
        yield finding.invalid(path, text, _MIXED if mixed else LABEL_1035, RULE)


def _names(names: Data) -> Iterator[Finding]:
    place = ("spec", "names")
    yield from _label((*place, "plural"), names.get("plural") or "")
    yield from _label((*place, "singular"), names.get("singular") or "")
    yield from _label((*place, "kind"), names.get("kind") or "", mixed=True)
    yield from _label((*place, "listKind"), names.get("listKind") or "", mixed=True)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield finding.invalid((*place, "listKind"), names["listKind"], "kind and listKind may not be the same", RULE)
    for word in ("shortNames", "categories"):
        for index, text in enumerate(names.get(word) or ()):
            yield from _label((*place, word, index), text)


def _versions(spec: Data, status: Data) -> Iterator[Finding]:
    versions = spec.get("versions") or []
    shown = [{"name": each.get("name"), "storage": each.get("storage")} for each in versions]
    if sum(each.get("storage") is True for each in versions) != 1:
        why = "must have exactly one version marked as storage version"
        yield finding.invalid(("spec", "versions"), shown, why, RULE)
    names = [each.get("name") or "" for each in versions]
    if len(set(names)) != len(names):
        yield finding.invalid(("spec", "versions"), shown, "must contain unique version names", RULE)
    for index, name in enumerate(names):
        yield from _label(("spec", "versions", index, "name"), name)
    stored = status.get("storedVersions") or []
    if not stored:
        yield finding.invalid(("status", "storedVersions"), None, "must have at least one stored version", RULE)
    for index, name in enumerate(stored):
        if name not in names:
            yield finding.invalid(("status", "storedVersions", index), name, "must appear in spec.versions", RULE)
    storage = next((each.get("name") for each in versions if each.get("storage")), None)
    if stored and storage and storage not in stored:
        yield finding.invalid(("status", "storedVersions"), stored, f"must have the storage version {storage}", RULE)


def _conversion(conversion: Data) -> Iterator[Finding]:
    strategy, webhook = conversion.get("strategy"), conversion.get("webhook")
    place = ("spec", "conversion")
    if not strategy:
        yield finding.required((*place, "strategy"), RULE)
    elif strategy not in ("None", "Webhook"):
        yield finding.unsupported((*place, "strategy"), strategy, ("None", "Webhook"), RULE)
    elif strategy == "Webhook":
        if not webhook or not webhook.get("clientConfig"):
            yield finding.required((*place, "webhookClientConfig"), RULE, "required when strategy is set to Webhook")
        if not (webhook or {}).get("conversionReviewVersions"):
            yield finding.required((*place, "conversionReviewVersions"), RULE)
    elif webhook:
        for word in ("webhookClientConfig", "conversionReviewVersions"):
            yield finding.forbidden((*place, word), "should not be set when strategy is not set to Webhook", RULE)


def _places(spec: Data) -> Iterator[tuple[Data, str, str]]:
    """Each version with the place of its parts: what all versions share is spoken of once, at the top."""
    versions = spec.get("versions") or []
    apart = [{word: value for word, value in each.items() if word in _PER_VERSION} for each in versions]
    if apart and all(each == apart[0] for each in apart):
        yield versions[0], "spec", "spec.validation"
        if any(_misses_schema(each) for each in versions[1:]):
            return
    else:
        for index, version in enumerate(versions):
            yield version, f"spec.versions[{index}]", f"spec.versions[{index}].schema"


_PER_VERSION = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")


def _misses_schema(version: Data) -> bool:
    return not (version.get("schema") or {}).get("openAPIV3Schema") and (version.get("schema") or {}).get("openAPIV3Schema") != {}


def _former_schema(version: Data, old: Data | None) -> Any:
    versions = ((old or {}).get("spec") or {}).get("versions") or ()
    former: Data = next((each for each in versions if each.get("name") == version.get("name")), {})
    return (former.get("schema") or {}).get("openAPIV3Schema")


def _version(version: Data, place: str, schema_place: str, former: Any) -> Iterator[Finding]:
    if version.get("deprecationWarning") and not version.get("deprecated"):
        # The place of a version's own fields is always the version's.
        at = place if place != "spec" else "spec.versions[0]"
        why = "can only be set for deprecated versions"
        yield finding.invalid((f"{at}.deprecationWarning",), version["deprecationWarning"], why, RULE)
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if schema is None:
        at = place if place != "spec" else "spec.versions[0]"
        yield finding.required((f"{at}.schema.openAPIV3Schema",), RULE)
    else:
        wrong = list(rules.check(schema, f"{schema_place}.openAPIV3Schema"))
        yield from wrong
        if not wrong and has_rules(schema):
            from paddock.kubernetes.schema.structural import expressions, limits  # noqa: PLC0415 - CEL comes with the first rule

            yield from expressions.check(schema, f"{schema_place}.openAPIV3Schema")
            # Rules that were let in once may stay.
            yield from limits.check(schema, f"{schema_place}.openAPIV3Schema", each=schema != former)
    yield from _subresources(version.get("subresources") or {}, f"{place}.subresources")
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        yield from _column(column, f"{place}.additionalPrinterColumns[{index}]")
    yield from _selectable(version.get("selectableFields") or [], schema or {}, f"{place}.selectableFields")


def _subresources(said: Data, place: str) -> Iterator[Finding]:
    scale = said.get("scale")
    if scale is None:
        return
    for word, roots, needed in (
        ("specReplicasPath", (".spec.",), True),
        ("statusReplicasPath", (".status.",), True),
        ("labelSelectorPath", (".spec.", ".status."), False),
    ):
        path, at = scale.get(word) or "", (f"{place}.scale.{word}",)
        if not path and needed:
            yield finding.required(at, RULE)
        elif path and not path.startswith(roots):
            under = " or ".join(root[:-1] for root in roots)
            why = f"should be a json path under {'either ' if len(roots) > 1 else ''}{under}"
            yield finding.invalid(at, path, why, RULE)


def _column(column: Data, place: str) -> Iterator[Finding]:
    if not column.get("name"):
        yield finding.required((f"{place}.name",), RULE)
    kind, form, path = column.get("type") or "", column.get("format"), column.get("jsonPath") or ""
    if kind not in _COLUMN_TYPES and kind:
        yield finding.invalid((f"{place}.type",), kind, f"must be one of {','.join(_COLUMN_TYPES)}", RULE)
    elif not kind:
        yield finding.required((f"{place}.type",), RULE)
    if form and form not in _COLUMN_FORMATS:
        yield finding.invalid((f"{place}.format",), form, f"must be one of {','.join(_COLUMN_FORMATS)}", RULE)
    if not path:
        yield finding.required((f"{place}.JSONPath",), RULE)
    elif not path.startswith("."):
        yield finding.invalid((f"{place}.JSONPath",), path, "must be a simple json path starting with .", RULE)


def _selectable(fields: list[Data], schema: Data, place: str) -> Iterator[Finding]:
    if len(fields) > MOST_SELECTABLE:
        yield finding.too_many((place,), len(fields), MOST_SELECTABLE, RULE)
    seen = set()
    for index, each in enumerate(fields):
        path, at = each.get("jsonPath") or "", (f"{place}[{index}].jsonPath",)
        if not path:
            yield finding.required(at, RULE)
            continue
        if path in seen:
            yield finding.duplicate(at, path, RULE)
        seen.add(path)
        wrong = _wrong_selectable(path, schema)
        if wrong:
            yield finding.invalid(at, path, wrong, RULE)


def _wrong_selectable(path: str, schema: Data) -> str:
    at, place = 0, schema
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            got = re.split(r"[.\[]", path[at:])[0] or path[at]
            return f"is an invalid path: expected [ or . but got: {got}"
        name = match[1] or match[2]
        inner = (place.get("properties") or {}).get(name)
        if inner is None or (place is schema and name in ("metadata", "apiVersion", "kind")):
            return "is an invalid path: does not refer to a valid field"
        place, at = inner, match.end()
    if place.get("type") not in ("string", "boolean", "integer"):
        return "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
    return ""


def _immutable(spec: Data, old: Data) -> Iterator[Finding]:
    before = old.get("spec") or {}
    conditions = (old.get("status") or {}).get("conditions") or ()
    established = any(each.get("type") == "Established" and each.get("status") == "True" for each in conditions)
    names, old_names = spec.get("names") or {}, before.get("names") or {}
    fixed: list[tuple[tuple[str, ...], Any, Any]] = [(("spec", "group"), spec.get("group"), before.get("group"))]
    fixed.append((("spec", "names", "plural"), names.get("plural"), old_names.get("plural")))
    if established:
        fixed.append((("spec", "scope"), spec.get("scope"), before.get("scope")))
        fixed.append((("spec", "names", "kind"), names.get("kind"), old_names.get("kind")))
    for place, value, former in fixed:
        if value != former:
            yield finding.invalid(place, value, "field is immutable", RULE)


def warnings(spec: Data) -> Iterator[str]:
    """Yield a warning for each accepted value without effect."""
    for version in spec.get("versions") or ():
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        yield from rules.warnings(schema or {}, "")
