"""Running the expressions of one policy on one write."""

import msgspec

from paddock.base.jsondata import Data
from paddock.server.admission import conditions
from paddock.server.admission.conditions import UndecidedConditions
from paddock.server.admission.expressions import CONDITIONS_LIMIT, POLICY_LIMIT, Activation, ExpressionFailed, Scope
from paddock.server.admission.stored import ValidatingPolicy
from paddock.server.admission.world import AdmissionContext
from paddock.server.objects.requests import Attempt
from paddock.server.resources.resource import ServedResource

_LONGEST_MESSAGE = 5 * 1024


class FailedValidation(msgspec.Struct, frozen=True):
    """A validation that does not hold, or has no value."""

    index: int
    message: str
    reason: str = ""


class PolicyResult(msgspec.Struct, frozen=True):
    """The result of a policy: failed validations, notes for the audit log, and notes that could not be made."""

    wrong: list[FailedValidation]
    notes: list[tuple[str, str]] = []
    broken: list[str] = []


async def evaluate(
    policy: ValidatingPolicy, attempt: Attempt, resource: ServedResource, admission: AdmissionContext, params: Data | None
) -> PolicyResult:
    """Run everything. A failure counts as wrong unless the policy ignores failures."""
    values = {**await conditions.values(attempt, resource, admission), "params": params}
    scope = Scope(policy.param_kind is not None, known=tuple(name for name, _ in policy.variables))
    plain = Activation(values, Scope(scope.params), limit=CONDITIONS_LIMIT)
    try:
        if policy.conditions and not conditions.decide(policy.conditions, plain):
            return PolicyResult([])
    except UndecidedConditions as error:
        return PolicyResult([] if policy.ignores else [FailedValidation(0, str(error))])
    activation = Activation(values, scope, policy.variables, POLICY_LIMIT)
    wrong = []
    for index, validation in enumerate(policy.validations):
        try:
            holds = activation.value(validation.get("expression") or "") is True
        except ExpressionFailed as error:
            if not policy.ignores:
                wrong.append(FailedValidation(index, str(error)))
        else:
            if not holds:
                wrong.append(FailedValidation(index, _message(validation, activation), validation.get("reason") or "Invalid"))
    notes, broken = _notes(policy, Activation(values, scope, policy.variables, POLICY_LIMIT))
    return PolicyResult(wrong, notes, broken)


def _message(validation: Data, activation: Activation) -> str:
    plain = (validation.get("message") or "").strip() or f"failed expression: {(validation.get('expression') or '').strip()}"
    if not validation.get("messageExpression"):
        return plain
    try:
        said = activation.value(validation["messageExpression"], authorizer=False)
    except ExpressionFailed:
        return plain
    text = said.strip() if isinstance(said, str) else ""
    return text if text and "\n" not in text and len(text) <= _LONGEST_MESSAGE else plain


def _notes(policy: ValidatingPolicy, activation: Activation) -> tuple[list[tuple[str, str]], list[str]]:
    notes, broken = [], []
    for key, text in policy.annotations:
        try:
            value = activation.value(text)
        except ExpressionFailed as error:
            if not policy.ignores:
                broken.append(str(error))
        else:
            if isinstance(value, str) and value.strip():
                notes.append((key, value.strip()))
    return notes, broken
