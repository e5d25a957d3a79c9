"""Rules for MutatingAdmissionPolicies and their bindings, beyond the types of their fields."""

from collections.abc import Iterator, Sequence

from paddock.base.jsondata import Data
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.server.admission.policyrules import AdmissionPolicyStrategy, PolicyBindingStrategy
from paddock.server.admission.registrations import RULE
from paddock.server.admission.stored import MEMBERS

_OPERATIONS = ("*", "CONNECT", "CREATE", "UPDATE")


class MutatingPolicyStrategy(AdmissionPolicyStrategy):
    """Policies that change what is written."""

    def check_operations(self, path: Path, rules: Sequence[Data]) -> Iterator[Finding]:
        """Nothing is changed when an object is deleted."""
        for rule in rules:
            for operation in rule.get("operations") or ():
                if operation not in _OPERATIONS:
                    yield finding.unsupported(path, operation, _OPERATIONS, RULE)

    def check_effect(self, new: Data, known: tuple[str, ...] | None, *, params: bool) -> Iterator[Finding]:
        """Mutations."""
        spec = new.get("spec") or {}
        mutations = spec.get("mutations") or []
        if not mutations:
            yield finding.required(("spec", "mutations"), RULE, "mutations must contain at least one item")
        for index, each in enumerate(mutations):
            yield from _mutation(("spec", "mutations", index), each, known, params=params)
        if not spec.get("reinvocationPolicy"):
            yield finding.required(("spec", "reinvocationPolicy"), RULE)


class MutatingBindingStrategy(PolicyBindingStrategy):
    """Bindings of policies that change what is written: they have no actions."""

    def check_actions(self, spec: Data) -> Iterator[Finding]:
        yield from ()


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


def _expression(path: Path, text: str, target: tuple[str, tuple[str, ...] | None], *, params: bool) -> Iterator[Finding]:
    from paddock.server.admission import expressions  # noqa: PLC0415 - most servers never see an expression

    kind, known = target
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
