"""Running the expressions of one policy on one write."""

from typing import Any

import msgspec

from paddock.apiserver.admission import conditions
from paddock.apiserver.admission.conditions import Undecided
from paddock.apiserver.admission.expressions import CONDITIONS_LIMIT, POLICY_LIMIT, Activation, Failed, Scope
from paddock.apiserver.admission.stored import Policy
from paddock.apiserver.admission.world import World
from paddock.apiserver.objects.asked import Attempt
from paddock.apiserver.resources.resource import Resource

Data = dict[str, Any]
_LONGEST_MESSAGE = 5 * 1024


class Wrong(msgspec.Struct, frozen=True):
    """A validation that does not hold, or has no value."""

    index: int
    message: str
    reason: str = ""


class Result(msgspec.Struct, frozen=True):
    """What became of a policy: what does not hold, what the audit log shall hold, and notes that could not be made."""

    wrong: list[Wrong]
    notes: list[tuple[str, str]] = []
    broken: list[str] = []


async def evaluate(policy: Policy, attempt: Attempt, resource: Resource, world: World, params: Data | None) -> Result:
    """Run everything. A failure counts as wrong unless the policy ignores failures."""
    values = {**await conditions.values(attempt, resource, world), "params": params}
    scope = Scope(policy.param_kind is not None, known=tuple(name for name, _ in policy.variables))
    plain = Activation(values, Scope(scope.params), limit=CONDITIONS_LIMIT)
    try:
        if policy.conditions and not conditions.decide(policy.conditions, plain):
            return Result([])
    except Undecided as error:
        return Result([] if policy.ignores else [Wrong(0, str(error))])
    activation = Activation(values, scope, policy.variables, POLICY_LIMIT)
    wrong = []
    for index, validation in enumerate(policy.validations):
        try:
            holds = activation.value(validation.get("expression") or "") is True
        except Failed as error:
            if not policy.ignores:
                wrong.append(Wrong(index, str(error)))
        else:
            if not holds:
                wrong.append(Wrong(index, _message(validation, activation), validation.get("reason") or "Invalid"))
    notes, broken = _notes(policy, Activation(values, scope, policy.variables, POLICY_LIMIT))
    return Result(wrong, notes, broken)


def _message(validation: Data, activation: Activation) -> str:
    plain = (validation.get("message") or "").strip() or f"failed expression: {(validation.get('expression') or '').strip()}"
    if not validation.get("messageExpression"):
        return plain
    try:
        said = activation.value(validation["messageExpression"], authorizer=False)
    except Failed:
        return plain
    text = said.strip() if isinstance(said, str) else ""
    return text if text and "\n" not in text and len(text) <= _LONGEST_MESSAGE else plain


def _notes(policy: Policy, activation: Activation) -> tuple[list[tuple[str, str]], list[str]]:
    notes, broken = [], []
    for key, text in policy.annotations:
        try:
            value = activation.value(text)
        except Failed as error:
            if not policy.ignores:
                broken.append(str(error))
        else:
            if isinstance(value, str) and value.strip():
                notes.append((key, value.strip()))
    return notes, broken
