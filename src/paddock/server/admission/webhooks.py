"""Webhooks: asked one after the other to change a write, and all at once to judge it.

A webhook that wants it is asked again, once, when others have changed the object after it. When a webhook cannot be asked, its
failure policy decides; a refusal is always a refusal.
"""

import asyncio
import logging

import msgspec
import orjson

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure, patch
from paddock.server import bodies
from paddock.server.admission import answers, questions
from paddock.server.admission.answers import CannotAsk, WebhookAnswer
from paddock.server.admission.covering import Candidates, CoverageIndex
from paddock.server.admission.matching import Matcher, read_matcher
from paddock.server.admission.world import AdmissionContext
from paddock.server.objects.encoding import decode
from paddock.server.objects.requests import Attempt
from paddock.server.resources.resource import ServedResource
from paddock.server.webhooks import Caller, CallFailed, WebhookReply, address_of

_LOG = logging.getLogger(__name__)
_GROUP = "admissionregistration.k8s.io"
MUTATING, VALIDATING = f"mutatingwebhookconfigurations.{_GROUP}", f"validatingwebhookconfigurations.{_GROUP}"
_HARMLESS = ("None", "NoneOnDryRun")
# What a patch holds is not noted: it may be anybody's secret.
_MUTATED = "mutation.webhook.admission.k8s.io"


class RegisteredWebhook(msgspec.Struct, frozen=True, eq=False):
    configuration: str
    index: int
    name: str
    matcher: Matcher
    client: Data
    ignores: bool
    harmless: bool
    again: bool
    seconds: float
    version: str
    conditions: tuple[tuple[str, str], ...]


def _read(configuration: str, index: int, data: Data) -> RegisteredWebhook:
    known = [each for each in data.get("admissionReviewVersions") or () if each in ("v1", "v1beta1")]
    return RegisteredWebhook(
        configuration,
        index,
        data.get("name", ""),
        read_matcher(data, "rules"),
        data.get("clientConfig") or {},
        data.get("failurePolicy") == "Ignore",
        data.get("sideEffects") in _HARMLESS,
        data.get("reinvocationPolicy") == "IfNeeded",
        float(data.get("timeoutSeconds") or 10),
        known[0] if known else "",
        tuple((each.get("name", ""), each.get("expression", "")) for each in data.get("matchConditions") or ()),
    )


# A webhook with the versions of the resource in which it may want the objects; the first that its names allow is taken.
Found = tuple[tuple[RegisteredWebhook, ServedResource], ...]


class Webhooks(CoverageIndex[RegisteredWebhook, ServedResource]):
    """The webhooks of one collection of configurations, by the name of their configuration and their place in it."""

    def __init__(self, admission: AdmissionContext, collection: str) -> None:
        self._collection = collection
        super().__init__(admission, collection)

    def _read(self) -> tuple[RegisteredWebhook, ...]:
        records = sorted(self._admission.store.scan(self._collection), key=lambda record: record.key.name)
        configurations = ((record.key.name, decode(record.value).get("webhooks") or ()) for record in records)
        return tuple(_read(name, index, hook) for name, hooks in configurations for index, hook in enumerate(hooks))

    def _about(self, candidates: Candidates) -> ServedResource:
        return candidates[0][1]


class WebhookDispatcher:
    """Asks webhooks about a write."""

    def __init__(self, admission: AdmissionContext, caller: Caller) -> None:
        self._admission = admission
        self._caller = caller

    async def change(self, found: Found, attempt: Attempt) -> Data | None:
        """Ask one after the other; the new object if anybody changed it."""
        before = attempt.new
        asked_before: set[RegisteredWebhook] = set()
        again: set[RegisteredWebhook] = set()
        for index, (hook, resource) in enumerate(found):
            if await self._change(hook, resource, attempt, f"round_0_index_{index}"):
                again |= asked_before
                asked_before.clear()
            if hook.again:
                asked_before.add(hook)
        for index, (hook, resource) in enumerate(found):
            if hook in again:
                await self._change(hook, resource, attempt, f"round_1_index_{index}")
        return None if attempt.new is before else attempt.new

    async def judge(self, found: Found, attempt: Attempt) -> None:
        """Ask all at once; the first refusal counts."""
        wanted = [(index, hook, resource) for index, (hook, resource) in enumerate(found) if await self._wants(hook, resource, attempt)]
        asked = (self._judge(hook, resource, attempt, index) for index, hook, resource in wanted)
        said = await asyncio.gather(*asked, return_exceptions=True)
        for each in said:
            if isinstance(each, BaseException):
                raise each

    async def _change(self, hook: RegisteredWebhook, resource: ServedResource, attempt: Attempt, place: str) -> bool:
        """Ask one webhook; whether it changed the object."""
        if not await self._wants(hook, resource, attempt):
            return False
        notes, label = attempt.options.notes, {"configuration": hook.configuration, "webhook": hook.name}
        try:
            verdict = await self._ask(hook, resource, attempt, mutating=True)
            if not verdict.patch:
                notes[f"{_MUTATED}/{place}"] = _json({**label, "mutated": False})
                return False
            changed = await self._patched(hook, resource, attempt, verdict)
        except CannotAsk as error:
            self._forgive(hook, error, attempt, f"failed-open.{_MUTATED}/{place}")
            return False
        notes[f"{_MUTATED}/{place}"] = _json({**label, "mutated": changed})
        return changed

    async def _judge(self, hook: RegisteredWebhook, resource: ServedResource, attempt: Attempt, index: int) -> None:
        try:
            await self._ask(hook, resource, attempt, mutating=False)
        except CannotAsk as error:
            self._forgive(hook, error, attempt, f"failed-open.validating.webhook.admission.k8s.io/round_0_index_{index}")

    def _forgive(self, hook: RegisteredWebhook, error: CannotAsk, attempt: Attempt, note: str) -> None:
        if not hook.ignores:
            raise answers.out_of_reach(hook.name, str(error)) from error
        _LOG.warning("webhook call failed; ignoring it by its failurePolicy", extra={"webhook": hook.name, "why": str(error)})
        attempt.options.notes[note] = hook.name

    async def _ask(self, hook: RegisteredWebhook, resource: ServedResource, attempt: Attempt, *, mutating: bool) -> WebhookAnswer:
        """The verdict of a webhook that allows the write; raises `CannotAsk`, or the `Failure` of a refusal."""
        if attempt.options.dry_run and not hook.harmless:
            raise answers.no_dry_run(hook.name)
        if not hook.version:
            why = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
            raise CannotAsk(f"could not create admission objects: {why}")
        uid = self._admission.clock.uid()
        body = orjson.dumps(await questions.review(attempt, resource, uid, hook.version))
        answered = await self._post(hook, body)
        verdict = answers.read(answered, uid, hook.version, mutating=mutating)
        attempt.warnings.extend(verdict.warnings)
        attempt.options.notes.update({f"{hook.name}/{key}": value for key, value in verdict.notes.items()})
        if not verdict.allowed:
            raise answers.refusal(hook.name, verdict.status)
        return verdict

    async def _post(self, hook: RegisteredWebhook, body: bytes) -> WebhookReply:
        mark = f"?timeout={hook.seconds:g}s"
        try:
            address = address_of(hook.client, self._admission.view)
            address = msgspec.structs.replace(address, url=address.url + mark, path=address.path + mark)
            return await self._caller.post(address, body, hook.seconds)
        except CallFailed as error:
            why = "context deadline exceeded" if error.why.endswith("context deadline exceeded") else error.why
            what = error.what if mark in error.what else f'{error.what[:-1]}{mark}"'
            raise CannotAsk(f"failed to call webhook: {what}: {why}") from error

    async def _patched(self, hook: RegisteredWebhook, resource: ServedResource, attempt: Attempt, verdict: WebhookAnswer) -> bool:
        """Apply a patch to the object of an attempt; whether it changed anything."""
        if attempt.new is None:
            raise failure.internal(
                f'admission webhook "{hook.name}" attempted to modify the object, which is not supported for this operation'
            )
        shown = await questions.in_version(attempt.new, attempt.resource, resource)
        try:
            made = patch.apply_json_patch(shown, list(verdict.patch))
            bodies.check_depth(made)
        except (patch.BadPatch, failure.Failure) as error:
            raise failure.internal(str(error)) from None
        if not isinstance(made, dict) or not isinstance(made.get("metadata"), dict):
            raise failure.internal(f'admission webhook "{hook.name}" leaves no object')
        return await questions.take(attempt, resource, made)

    async def _wants(self, hook: RegisteredWebhook, resource: ServedResource, attempt: Attempt) -> bool:
        """Return whether selectors and conditions cover a write."""
        if not hook.matcher.selects(attempt, self._admission):
            return False
        return not hook.conditions or await self._holds(hook, resource, attempt)

    async def _holds(self, hook: RegisteredWebhook, resource: ServedResource, attempt: Attempt) -> bool:
        from paddock.server.admission import conditions  # noqa: PLC0415 - most servers never see an expression

        try:
            return await conditions.hold(hook.conditions, attempt, resource, self._admission)
        except conditions.UndecidedConditions as error:
            if hook.ignores:
                return False
            raise failure.forbidden(attempt.resource.about(attempt.name), str(error)) from None


def _json(data: Data) -> str:
    return orjson.dumps(data).decode()
