"""A write as webhooks and expressions are shown it: `AdmissionReview`, `request`, and objects in the version they want."""

import copy

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure
from paddock.server.admission.matching import is_namespace
from paddock.server.objects.encoding import Encoder, encode
from paddock.server.objects.requests import Attempt
from paddock.server.resources.resource import ServedResource

_KINDS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


def request(attempt: Attempt, resource: ServedResource) -> Data:
    """Return the request without the objects; `resource` is the version in which the webhook or policy sees them."""
    options, own = attempt.options, attempt.resource
    asked: Data = {
        "kind": _kind(resource),
        "resource": _resource(resource),
        "requestKind": _kind(own),
        "requestResource": _resource(own),
        "operation": attempt.operation,
        "userInfo": _user(attempt),
        "dryRun": options.dry_run,
        "options": _options(attempt),
    }
    namespace = attempt.name if is_namespace(own) else attempt.namespace
    asked.update({key: value for key, value in (("name", attempt.name), ("namespace", namespace)) if value})
    if options.subresource:
        asked["subResource"] = asked["requestSubResource"] = options.subresource
    return asked


def _kind(resource: ServedResource) -> Data:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _resource(resource: ServedResource) -> Data:
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}


def _user(attempt: Attempt) -> Data:
    options = attempt.options
    user: Data = {"username": options.user, "groups": list(options.groups)}
    if options.uid:
        user["uid"] = options.uid
    if options.extra:
        user["extra"] = {key: list(values) for key, values in options.extra.items()}
    return user


def _options(attempt: Attempt) -> Data | None:
    kind = _KINDS.get(attempt.operation)
    if kind is None:
        return attempt.details or None
    made: Data = {"kind": kind, "apiVersion": "meta.k8s.io/v1", **attempt.details}
    if attempt.operation != "DELETE":
        made.update(attempt.options.given)
    if attempt.options.dry_run:
        made["dryRun"] = ["All"]
    return made


async def in_version(data: Data | None, own: ServedResource, other: ServedResource) -> Data | None:
    """An object of one version in another version of the same collection; whoever converts may have to be asked."""
    if data is None or own == other:
        return data
    moved = copy.deepcopy(data)
    stored = Encoder(own).store(moved) if own.conversion is None else (await own.conversion.store(moved)).stored
    encoder = Encoder(other)
    (value,) = await encoder.prepare((encode(stored),))
    return encoder.read(value)


async def take(attempt: Attempt, resource: ServedResource, made: Data) -> bool:
    """Make what a mutation left, in a version, the object of an attempt; whether anything changed."""
    own = attempt.resource
    if made == await in_version(attempt.new, own, resource):
        return False
    decoded = resource.pipeline.decode(copy.deepcopy(made))
    if decoded.broken:
        raise failure.internal("; ".join(f"{each.field}: {each.message}" for each in decoded.broken))
    if not decoded.wrong:
        # What is wrong stays as it is, to be found when the object is validated.
        made = decoded.data
        resource.strategy.complete(made)
    attempt.new = await in_version(made, resource, own)
    return True


async def objects(attempt: Attempt, resource: ServedResource) -> tuple[Data | None, Data | None]:
    """The new object and the old one, in a version."""
    own = attempt.resource
    return await in_version(attempt.new, own, resource), await in_version(attempt.old, own, resource)


async def review(attempt: Attempt, resource: ServedResource, uid: str, version: str) -> Data:
    """The document that a webhook gets."""
    new, old = await objects(attempt, resource)
    return {
        "kind": "AdmissionReview",
        "apiVersion": f"admission.k8s.io/{version}",
        "request": {"uid": uid, **request(attempt, resource), "object": new, "oldObject": old},
    }
