"""ValidatingAdmissionPolicies: expressions that must hold, where a binding says so."""

from collections.abc import AsyncIterator

import msgspec
import orjson

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure
from paddock.kubernetes.meta.failure import Failure, StatusCause
from paddock.server.admission import parameters
from paddock.server.admission.covering import Candidates, CoverageIndex
from paddock.server.admission.parameters import NotConfigured
from paddock.server.admission.stored import PolicyBinding, ValidatingPolicy, read_binding, read_policy
from paddock.server.admission.world import AdmissionContext
from paddock.server.objects.encoding import decode
from paddock.server.objects.requests import Attempt
from paddock.server.resources.resource import ServedResource

_GROUP = "admissionregistration.k8s.io"
POLICIES, BINDINGS = f"validatingadmissionpolicies.{_GROUP}", f"validatingadmissionpolicybindings.{_GROUP}"
_CODES = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}
_LONGEST_NOTE = 10 * 1024


class Denial(msgspec.Struct, frozen=True):
    """A policy's refusal of a write."""

    policy: str
    binding: str
    message: str
    reason: str = ""

    def failure(self, attempt: Attempt) -> Failure:
        """Return the answer for the client."""
        by = f"ValidatingAdmissionPolicy '{self.policy}'" + (f" with binding '{self.binding}'" if self.binding else "")
        text, reason = f"{by} denied request: {self.message}", self.reason or "Invalid"
        said = failure.forbidden(attempt.resource.about(attempt.name), text, [StatusCause("", text)])
        return Failure(_CODES.get(reason, 422), reason, said.message, about=said.about, causes=said.causes)


Found = tuple[tuple[ValidatingPolicy, Candidates], ...]


class PolicySet(CoverageIndex[ValidatingPolicy, Candidates]):
    """The policies that are bound, with the rules that cover a write."""

    def __init__(self, admission: AdmissionContext, *, off: bool = False) -> None:
        self._off = off
        super().__init__(admission, POLICIES, BINDINGS)

    def _read(self) -> tuple[ValidatingPolicy, ...]:
        if self._off:
            return ()
        store = self._admission.store
        bindings = [read_binding(decode(record.value)) for record in sorted(store.scan(BINDINGS), key=lambda record: record.key.name)]
        found = (
            read_policy(decode(record.value), tuple(each for each in bindings if each.policy == record.key.name))
            for record in sorted(store.scan(POLICIES), key=lambda record: record.key.name)
        )
        # A policy that nobody has bound has no effect.
        return tuple(each for each in found if each.bindings)

    def _about(self, candidates: Candidates) -> Candidates:
        return candidates


async def judge(found: Found, attempt: Attempt, admission: AdmissionContext) -> None:
    """Ask all policies; the first denial counts."""
    denials: list[Denial] = []
    for policy, rules in found:
        resource = next((version for rule, version in rules if rule.names_it(attempt.name)), None)
        if resource is None or not policy.matcher.selects(attempt, admission) or policy.matcher.leaves_out(attempt, admission):
            continue
        denials.extend([each async for each in _Judging(policy, attempt, resource, admission).denials()])
    if denials:
        raise denials[0].failure(attempt)


class _Judging:
    """One policy and one write."""

    def __init__(self, policy: ValidatingPolicy, attempt: Attempt, resource: ServedResource, admission: AdmissionContext) -> None:
        self._policy = policy
        self._attempt = attempt
        self._resource = resource
        self._admission = admission
        self._notes: dict[str, list[str]] = {}

    async def denials(self) -> AsyncIterator[Denial]:
        """Every denial that a binding wants."""
        kind, ignores = self._policy.param_kind, self._policy.ignores
        try:
            parameters.check_kind(kind, self._admission)
        except NotConfigured as error:
            if not ignores:
                yield Denial(self._policy.name, "", f"failed to configure policy: {error}")
            return
        for binding in self._policy.bindings:
            if not parameters.matches(binding, self._attempt, self._admission):
                continue
            try:
                params = parameters.of(kind, binding, self._attempt, self._admission)
            except NotConfigured as error:
                if not ignores:
                    yield Denial(self._policy.name, binding.name, f"failed to configure binding: {error}")
                continue
            for each in params:
                async for denial in self._asked(binding, each):
                    yield denial
        for key, values in self._notes.items():
            self._attempt.options.notes[f"{self._policy.name}/{key}"] = ", ".join(dict.fromkeys(values))

    async def _asked(self, binding: PolicyBinding, params: Data | None) -> AsyncIterator[Denial]:
        from paddock.server.admission import evaluating  # noqa: PLC0415 - most servers never see an expression

        result = await evaluating.evaluate(self._policy, self._attempt, self._resource, self._admission, params)
        for decision in result.wrong:
            if "Deny" in binding.actions:
                yield Denial(self._policy.name, binding.name, decision.message, decision.reason)
            if "Warn" in binding.actions:
                by = f"ValidatingAdmissionPolicy '{self._policy.name}' with binding '{binding.name}'"
                self._attempt.warnings.append(f"Validation failed for {by}: {decision.message}")
            if "Audit" in binding.actions:
                self._audit(binding, decision.index, decision.message)
        for key, value in result.notes:
            self._notes.setdefault(key, []).append(value[:_LONGEST_NOTE])
        for message in result.broken:
            yield Denial(self._policy.name, binding.name, message)

    def _audit(self, binding: PolicyBinding, index: int, message: str) -> None:
        said = {
            "message": message,
            "policy": self._policy.name,
            "binding": binding.name,
            "expressionIndex": index,
            "validationActions": list(binding.actions),
        }
        self._attempt.options.notes["validation.policy.admission.k8s.io/validation_failure"] = orjson.dumps([said]).decode()
