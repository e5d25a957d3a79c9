"""MutatingAdmissionPolicies: expressions that make patches, where a binding says so.

They work before the mutating webhooks. A policy that wants it works again, once, when anybody else changed the object after it.
"""

from collections.abc import Collection

from paddock.base.jsondata import Data
from paddock.kubernetes.meta.failure import Failure, StatusCause
from paddock.server.admission import parameters, questions
from paddock.server.admission.covering import Candidates, CoverageIndex
from paddock.server.admission.parameters import NotConfigured
from paddock.server.admission.stored import BadMutation, MutatingPolicy, PolicyBinding, read_binding, read_mutating
from paddock.server.admission.world import AdmissionContext
from paddock.server.objects.encoding import decode
from paddock.server.objects.requests import Attempt
from paddock.server.resources.resource import ServedResource

_GROUP = "admissionregistration.k8s.io"
POLICIES, BINDINGS = f"mutatingadmissionpolicies.{_GROUP}", f"mutatingadmissionpolicybindings.{_GROUP}"
Found = tuple[tuple[MutatingPolicy, Candidates], ...]


class Mutations(CoverageIndex[MutatingPolicy, Candidates]):
    """The mutating policies that are bound, with the rules that cover a write."""

    def __init__(self, admission: AdmissionContext, *, off: bool = False) -> None:
        self._off = off
        super().__init__(admission, POLICIES, BINDINGS)

    def _read(self) -> tuple[MutatingPolicy, ...]:
        if self._off:
            return ()
        store = self._admission.store
        bindings = [read_binding(decode(record.value)) for record in sorted(store.scan(BINDINGS), key=lambda record: record.key.name)]
        found = (
            read_mutating(decode(record.value), tuple(each for each in bindings if each.policy == record.key.name))
            for record in sorted(store.scan(POLICIES), key=lambda record: record.key.name)
        )
        return tuple(each for each in found if each.bindings)

    def _about(self, candidates: Candidates) -> Candidates:
        return candidates


async def change(found: Found, attempt: Attempt, admission: AdmissionContext) -> dict[MutatingPolicy, Data | None]:
    """Let all policies work; the object as each of those that want to work again left it."""
    left: dict[MutatingPolicy, Data | None] = {}
    for policy, rules in found:
        resource = next((version for rule, version in rules if rule.names_it(attempt.name)), None)
        if resource is None or attempt.new is None:
            continue
        if not policy.matcher.selects(attempt, admission) or policy.matcher.leaves_out(attempt, admission):
            continue
        for binding in policy.bindings:
            await _work(policy, binding, resource, attempt, admission)
        if policy.again:
            left[policy] = attempt.new
    return left


async def change_again(found: Found, left: dict[MutatingPolicy, Data | None], attempt: Attempt, admission: AdmissionContext) -> None:
    """Let those policies work again whose object was changed after them."""
    late: Collection[MutatingPolicy] = [policy for policy, former in left.items() if attempt.new != former]
    await change(tuple(each for each in found if each[0] in late), attempt, admission)


async def _work(
    policy: MutatingPolicy, binding: PolicyBinding, resource: ServedResource, attempt: Attempt, admission: AdmissionContext
) -> None:
    from paddock.server.admission import patching  # noqa: PLC0415 - most servers never see an expression

    if not parameters.matches(binding, attempt, admission):
        return
    try:
        for params in _params(policy, binding, attempt, admission):
            made = await patching.patched(policy, attempt, resource, admission, params)
            if made is not None:
                await questions.take(attempt, resource, made)
    except BadMutation as error:
        if not policy.ignores:
            raise _denied(policy, binding, str(error), attempt) from None


def _params(policy: MutatingPolicy, binding: PolicyBinding, attempt: Attempt, admission: AdmissionContext) -> list[Data | None]:
    try:
        parameters.check_kind(policy.param_kind, admission)
    except NotConfigured as error:
        raise BadMutation(f"failed to configure policy: {error}") from None
    try:
        return parameters.of(policy.param_kind, binding, attempt, admission)
    except NotConfigured as error:
        raise BadMutation(f"failed to configure binding: {error}") from None


def _denied(policy: MutatingPolicy, binding: PolicyBinding, why: str, attempt: Attempt) -> Failure:
    text = f"policy '{policy.name}' with binding '{binding.name}' denied request: {why}"
    return Failure(403, "Invalid", text, about=attempt.resource.about(attempt.name), causes=[StatusCause("", text)])
