"""Label selectors: the shape, the rule, and whether labels match. Pure."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.field import Field, Object
from paddock.kubernetes.schema.finding import Finding, Path

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


class LabelSelectorRequirement(Object):
    """One condition on a label."""

    key: Annotated[str, Field("The label.", required=True, format="label-key")] = ""
    operator: Annotated[str, Field("How the label's value is compared.", required=True, enum=OPERATORS)] = ""
    values: Annotated[list[str] | None, Field("The values, for In and NotIn.")] = None


class LabelSelector(Object):
    """Selects objects by their labels; all conditions must hold. An empty selector matches everything."""

    matchLabels: Annotated[
        dict[str, Annotated[str, Field(format="label-value")]] | None,
        Field("Labels with exactly these values.", key_format="label-key"),
    ] = None
    matchExpressions: Annotated[list[LabelSelectorRequirement] | None, Field("Conditions on labels.")] = None


def read(data: Mapping[str, Any] | None) -> LabelSelector:
    """A selector from plain data; none is the empty one."""
    given = data or {}
    conditions = [
        LabelSelectorRequirement(key=each.get("key", ""), operator=each.get("operator", ""), values=each.get("values"))
        for each in given.get("matchExpressions") or ()
    ]
    return LabelSelector(matchLabels=dict(given.get("matchLabels") or {}), matchExpressions=conditions)


def is_empty(selector: LabelSelector | None) -> bool:
    """Return whether a selector has no conditions."""
    return selector is None or not (selector.matchLabels or selector.matchExpressions)


def matches(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Return whether labels satisfy every condition."""
    if any(labels.get(key) != value for key, value in (selector.matchLabels or {}).items()):
        return False
    return all(_holds(condition, labels) for condition in selector.matchExpressions or ())


def _holds(condition: LabelSelectorRequirement, labels: Mapping[str, str]) -> bool:
    present = condition.key in labels
    listed = labels.get(condition.key) in (condition.values or ())
    return {
        "In": present and listed,
        "NotIn": not listed,
        "Exists": present,
        "DoesNotExist": not present,
    }.get(condition.operator, False)


def text(selector: LabelSelector | None) -> str:
    """The canonical string form, as the scale subresource and `kubectl -l` write it: sorted by label."""
    if selector is None:
        return ""
    parts = [(key, f"{key}={value}") for key, value in (selector.matchLabels or {}).items()]
    parts += [(condition.key, _condition_text(condition)) for condition in selector.matchExpressions or ()]
    return ",".join(part for _, part in sorted(parts))


def _condition_text(condition: LabelSelectorRequirement) -> str:
    values = ",".join(sorted(condition.values or ()))
    return {
        "In": f"{condition.key} in ({values})",
        "NotIn": f"{condition.key} notin ({values})",
        "Exists": condition.key,
        "DoesNotExist": f"!{condition.key}",
    }.get(condition.operator, "")


def selector_findings(selector: LabelSelector | None, path: Path, rule: str) -> Iterator[Finding]:
    """In and NotIn need values, Exists and DoesNotExist have none."""
    for index, condition in enumerate(selector.matchExpressions or () if selector else ()):
        place = (*path, "matchExpressions", index, "values")
        if condition.operator in ("In", "NotIn") and not condition.values:
            yield finding.required(place, rule, f'must be specified when operator is "{condition.operator}"')
        elif condition.operator in ("Exists", "DoesNotExist") and condition.values:
            yield finding.forbidden(place, f'may not be specified when operator is "{condition.operator}"', rule)
