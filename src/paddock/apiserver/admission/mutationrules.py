"""What MutatingAdmissionPolicies and their bindings must be besides the types of their fields."""

from collections.abc import Iterator
from typing import Any

from paddock.apiserver.admission.policyrules import PolicyBindingStrategy, check_param_kind, check_resources, check_variables
from paddock.apiserver.admission.registrations import RULE, conditions
from paddock.apiserver.admission.stored import MEMBERS
from paddock.apiserver.resources.strategy import Strategy, WriteContext
from paddock.schema import finding
from paddock.schema.finding import Finding, Path

Data = dict[str, Any]
_OPERATIONS = ("*", "CONNECT", "CREATE", "UPDATE")


class MutatingPolicyStrategy(Strategy):
    """Policies that change what is written."""

    def counts_generation(self) -> bool:
        return True

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """Rules, expressions, names."""
        spec, before = new.get("spec") or {}, (old or {}).get("spec") or {}
        path: Path = ("spec",)
        params = spec.get("paramKind") is not None
        if params:
            yield from check_param_kind((*path, "paramKind"), spec["paramKind"])
        if spec.get("matchConstraints") is None:
            yield finding.required((*path, "matchConstraints"), RULE)
        else:
            yield from _constraints((*path, "matchConstraints"), spec["matchConstraints"])
        if old is None or any(spec.get(each) != before.get(each) for each in ("paramKind", "matchConditions")):
            yield from conditions((*path, "matchConditions"), spec.get("matchConditions") or [], params=params)
        yield from check_variables((*path, "variables"), spec, params=params)
        mutations = spec.get("mutations") or []
        if not mutations:
            yield finding.required((*path, "mutations"), RULE, "mutations must contain at least one item")
        known = tuple(each.get("name") or "" for each in spec.get("variables") or ()) or None
        for index, each in enumerate(mutations):
            yield from _mutation((*path, "mutations", index), each, known, params=params)
        if not spec.get("reinvocationPolicy"):
            yield finding.required((*path, "reinvocationPolicy"), RULE)


class MutatingBindingStrategy(PolicyBindingStrategy):
    """Bindings of policies that change what is written: they have no actions."""

    def check_actions(self, spec: Data) -> Iterator[Finding]:
        yield from ()


def _constraints(path: Path, said: Data) -> Iterator[Finding]:
    yield from check_resources(path, said)
    rules = said.get("resourceRules") or []
    if not rules:
        yield finding.required((*path, "resourceRules"), RULE)
    for rule in rules:
        for operation in rule.get("operations") or ():
            if operation not in _OPERATIONS:
                yield finding.unsupported((*path, "resourceRules", "operations"), operation, _OPERATIONS, RULE)


def _mutation(path: Path, said: Data, known: tuple[str, ...] | None, *, params: bool) -> Iterator[Finding]:
    kind = said.get("patchType") or ""
    if not kind:
        yield finding.required((*path, "patchType"), RULE)
    elif kind not in MEMBERS:
        yield finding.unsupported((*path, "patchType"), kind, MEMBERS, RULE)
    for each, member in MEMBERS.items():
        if kind == each and said.get(member) is None:
            yield finding.required((*path, member), RULE, f"must be specified when patchType is {kind}")
        elif kind == each:
            yield from _expression((*path, member, "expression"), said[member].get("expression") or "", (kind, known), params=params)
        elif kind in MEMBERS and said.get(member) is not None:
            yield finding.invalid((*path, member), f"{{{member}}}", f"must not be specified when patchType is {kind}", RULE)


def _expression(path: Path, text: str, place: tuple[str, tuple[str, ...] | None], *, params: bool) -> Iterator[Finding]:
    from paddock.apiserver.admission import expressions  # noqa: PLC0415 - most servers never see an expression

    kind, known = place
    if not text.strip():
        yield finding.required(path, RULE)
        return
    found, wrong = expressions.type_of(text, expressions.Scope(params, known=known, mutates=True), {})
    wanted, shown = ("Object", found.kind) if kind == "ApplyConfiguration" else ("list(JSONPatch)", found.kind)
    if found.kind == "list" and found.item is not None:
        shown = f"list({found.item.kind})"
    # What an expression gives is known for sure only where it is run.
    if not wrong and shown not in (wanted, "dyn", "list(dyn)" if wanted.startswith("list") else ""):
        wrong = f"must evaluate to {wanted} but got {shown}"
    if wrong:
        yield finding.invalid(path, text, wrong, RULE)
