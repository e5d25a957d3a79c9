"""The rules of metadata that hold for every object (docs/spec/kube-api.md section 2.3)."""

import re
from collections.abc import Iterator
from typing import Any

from paddock.base import names
from paddock.base.jsondata import Data, copied
from paddock.kubernetes.meta import failure
from paddock.kubernetes.meta.apply.places import encoded
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.schema.structural import embedded
from paddock.server.resources.resource import ServedResource

RULE = "object/metadata"
_ANNOTATION_BYTES = 256 * 1024
# Names of generated objects: no vowels, so that no words appear, and no characters that look alike.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_GENERATED_PREFIX = 58
_UNDOTTED_FINALIZERS = ("orphan", "foregroundDeletion", "kubernetes", "customresourcecleanup.apiextensions.k8s.io")
_MAPS = ("labels", "annotations")
_SERVER_SET = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation", "managedFields")
_KEPT_ON_UPDATE = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
_TEXTS = ("name", "generateName", "namespace", "uid", "resourceVersion", "selfLink", "creationTimestamp", "deletionTimestamp")
_OWNER = {"apiVersion": str, "kind": str, "name": str, "uid": str, "controller": bool, "blockOwnerDeletion": bool}
_TIMES = ("creationTimestamp", "deletionTimestamp")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)\Z", re.ASCII)
_KNOWN = frozenset((*_TEXTS, *_MAPS, "ownerReferences", "finalizers", "managedFields", "generation", "deletionGracePeriodSeconds"))


def check_type(resource: ServedResource, raw: Data) -> None:
    """Refuse the kind and the version of another resource; a body of a built-in kind may leave both out."""
    for key, wanted, what in (("apiVersion", resource.api_version, "API version"), ("kind", resource.kind, "kind")):
        given = raw.get(key)
        if given in (None, "") and resource.strategic:
            raw[key] = wanted
        elif key == "kind" and given and given != wanted and not resource.strategic:
            meta = raw.get("metadata")
            name = meta.get("name") if isinstance(meta, dict) else ""
            about = failure.FailureTarget(name=str(name or ""), group=resource.group, kind=str(given))
            raise failure.invalid(about, [finding.invalid(("kind",), given, f"must be {wanted}", RULE)])
        elif given != wanted:
            raise failure.bad_request(f"the {what} in the data ({given or ''}) does not match the expected {what} ({wanted})")


def coerce(data: Data, resource: ServedResource) -> list[Finding]:
    """Make `metadata` what every object's is, in place; returns the findings of unknown members. Wrong types are a bad request.

    An empty list of managedFields gives all ownership up, except where a typed body cannot tell it from none.
    """
    metadata = data.setdefault("metadata", {})
    if metadata is None:
        metadata = data["metadata"] = {}
    if not isinstance(metadata, dict):
        raise unreadable(resource, f"json: cannot unmarshal {_word(metadata)} into Go struct field .metadata of type v1.ObjectMeta")
    unknown = [
        Finding(path=("metadata", key), message=f'unknown field "metadata.{key}"', rule=RULE) for key in metadata if key not in _KNOWN
    ]
    for key in list(metadata):
        value = metadata[key]
        if key not in _KNOWN or value is None:
            del metadata[key]
            continue
        wrong = embedded.unfit(key, value)
        if wrong:
            # Kinds that are compiled in name the whole way to the member.
            raise unreadable(resource, wrong.replace("ObjectMeta.", "ObjectMeta.metadata.") if resource.strategic else wrong)
        if key in _TIMES and value and not _TIME.match(value):
            raise unreadable(resource, f'metadata.{key}: parsing time "{value}": must be a time in RFC 3339')
        if key == "ownerReferences" and value:
            _coerce_owners(value, resource)
        elif value in ({}, [], "") and (resource.strategic or key != "managedFields"):
            del metadata[key]
        elif key in _MAPS or key == "finalizers":
            metadata[key] = embedded.without_nulls(key, value)
    return unknown


def unreadable(resource: ServedResource, why: str) -> failure.Failure:
    """A body that is no object of its kind."""
    return failure.bad_request(f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {why}')


def _coerce_owners(owners: list[Data], resource: ServedResource) -> None:
    for owner in owners:
        for name, wanted in _OWNER.items():
            if owner.get(name) is None:
                owner.pop(name, None)
            elif not isinstance(owner[name], wanted):
                place = f"OwnerReference.{'metadata.' if resource.strategic else ''}ownerReferences.{name}"
                word = "string" if wanted is str else "bool"
                raise unreadable(resource, f"json: cannot unmarshal {_word(owner[name])} into Go struct field {place} of type {word}")


def _word(value: Any) -> str:
    return {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}.get(type(value), "null")


def prepare_create(resource: ServedResource, data: Data, namespace: str, *, uid: str, now: str, suffix: str) -> None:
    """Set what the server sets, in place. `suffix` completes a generateName; see `generated_suffix`."""
    metadata = data["metadata"]
    if not metadata.get("resourceVersion"):
        metadata.pop("resourceVersion", None)
    place(resource, metadata, namespace)
    for key in _SERVER_SET:
        metadata.pop(key, None)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = metadata["generateName"][:_GENERATED_PREFIX] + suffix
    metadata["uid"] = uid
    metadata["creationTimestamp"] = now
    if resource.strategy.counts_generation():
        metadata["generation"] = 1


def unborn(data: Data, *, named: bool) -> Data:
    """A new object without what it gets when it is made; its name is one of these things when it was not given."""
    hidden = ("uid", "creationTimestamp", "generation", *(() if named else ("name",)))
    return {**data, "metadata": {key: value for key, value in data["metadata"].items() if key not in hidden}}


def keep(data: Data, before: Data) -> None:
    """Take back what nobody but the server sets, in place; `before` is the metadata as the server had it."""
    metadata = data["metadata"]
    for key in (*_SERVER_SET, "resourceVersion", "namespace"):
        if key in before:
            metadata[key] = before[key]
        else:
            metadata.pop(key, None)
    if not metadata.get("name"):
        metadata["name"] = before["name"]


def generated_suffix(random: bytes) -> str:
    """Five characters made of five random bytes."""
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in random[:5])


def place(resource: ServedResource, metadata: Data, namespace: str) -> None:
    """The namespace is the URL's."""
    if not resource.namespaced:
        metadata.pop("namespace", None)
        return
    if metadata.get("namespace") not in (None, namespace):
        raise failure.bad_request("the namespace of the provided object does not match the namespace sent on the request")
    metadata["namespace"] = namespace


def changeable(metadata: Data) -> Data:
    """Metadata that may be changed in place, down to its maps and lists. Nobody changes managedFields, which are long, in place."""
    return {name: value if name == "managedFields" else copied(value) for name, value in metadata.items()}


def prepare_update(resource: ServedResource, new: Data, old: Data, namespace: str, name: str) -> None:
    """Keep what a client cannot change, in place; check what it believes about the object."""
    metadata, before = new["metadata"], old["metadata"]
    place(resource, metadata, namespace)
    if not metadata.get("name"):
        raise failure.bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if metadata["name"] != name:
        raise failure.bad_request(f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})")
    about = resource.about(name)
    if metadata.get("uid") not in (None, before.get("uid")):
        why = f"Precondition failed: UID in precondition: {metadata['uid']}, UID in object meta: {before.get('uid')}"
        raise failure.conflict(about, why)
    revision = metadata.get("resourceVersion")
    if revision in (None, "", "0"):
        if not resource.unconditional_update and revision != before.get("resourceVersion"):
            path = ("metadata", "resourceVersion")
            raise failure.invalid(about, [finding.invalid(path, 0, "must be specified for an update", RULE)])
    elif revision != before.get("resourceVersion"):
        raise failure.modified(about)
    for key in _KEPT_ON_UPDATE:
        if key in before:
            metadata[key] = before[key]
        else:
            metadata.pop(key, None)
    metadata.pop("selfLink", None)
    # The object compares equal to the stored one when nothing else is new.
    metadata["resourceVersion"] = before.get("resourceVersion", "")


def check(resource: ServedResource, new: Data, old: Data | None) -> Iterator[Finding]:
    """Everything wrong with the metadata of an object."""
    metadata = new["metadata"]
    yield from _check_name(resource, metadata, old)
    for key, value in (metadata.get("labels") or {}).items():
        for why in () if names.is_qualified(key) else names.wrong_qualified(key):
            yield finding.invalid(("metadata", "labels"), key, why, RULE)
        for why in () if names.is_label_value(value) else names.wrong_label_value(value):
            yield finding.invalid(("metadata", "labels"), value, why, RULE)
    annotations = metadata.get("annotations") or {}
    for key in annotations:
        # Capitals are no mistake here.
        for why in () if names.is_qualified(key.lower()) else names.wrong_qualified(key.lower()):
            yield finding.invalid(("metadata", "annotations"), key, why, RULE)
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > _ANNOTATION_BYTES:
        yield finding.too_long(("metadata", "annotations"), _ANNOTATION_BYTES, RULE, "bytes")
    yield from _check_owners(metadata)
    yield from _check_finalizers(resource, metadata, old)


def _check_name(resource: ServedResource, metadata: Data, old: Data | None) -> Iterator[Finding]:
    name = metadata.get("name", "")
    if not name:
        yield finding.required(("metadata", "name"), RULE, "name or generateName is required")
        return
    prefix = metadata.get("generateName", "").rstrip("-") if old is None else ""
    if prefix and (wrong := resource.strategy.wrong_name(prefix)):
        yield finding.invalid(("metadata", "generateName"), metadata["generateName"], wrong, RULE)
    wrong = resource.strategy.wrong_name(name)
    if wrong:
        yield finding.invalid(("metadata", "name"), name, wrong, RULE)


def _check_owners(metadata: Data) -> Iterator[Finding]:
    controllers = 0
    # Which one it is goes without saying upstream, too.
    path: Path = ("metadata", "ownerReferences")
    for owner in metadata.get("ownerReferences") or ():
        for key in ("apiVersion", "kind", "name", "uid"):
            if not isinstance(owner.get(key), str) or not owner[key]:
                yield finding.invalid((*path, key), owner.get(key, ""), f"{key} must not be empty", RULE)
        if str(owner.get("apiVersion", "")).count("/") > 1:
            why = "must be a group and a version, or a version alone"
            yield finding.invalid((*path, "apiVersion"), owner["apiVersion"], why, RULE)
        if owner.get("kind") == "Event":
            yield finding.invalid(path, owner.get("kind"), "is disallowed from being an owner", RULE)
        controllers += owner.get("controller") is True
    if controllers > 1:
        text = "Only one reference can have Controller set to true"
        yield finding.invalid(("metadata", "ownerReferences"), controllers, text, RULE)


def _check_finalizers(resource: ServedResource, metadata: Data, old: Data | None) -> Iterator[Finding]:
    finalizers = metadata.get("finalizers") or []
    path: Path = ("metadata", "finalizers")
    for each in finalizers:
        if not names.is_qualified(each):
            yield from (finding.invalid(path, each, why, RULE) for why in names.wrong_qualified(each))
        elif "/" not in each and each not in _UNDOTTED_FINALIZERS:
            if resource.strategic:
                yield finding.invalid(path, each, "name is neither a standard finalizer name nor is it fully qualified", RULE)
            else:
                text = f'"{each}": prefer a domain-qualified finalizer name'
                yield finding.warning(path, f"{text} to avoid accidental conflicts with other finalizer writers", RULE)
    if old is not None and old["metadata"].get("deletionTimestamp"):
        held = frozenset(old["metadata"].get("finalizers") or ())
        added = [each for each in finalizers if each not in held]
        if added:
            shown = ", ".join(f'"{each}"' for each in added)
            text = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{shown}}}"
            yield finding.forbidden(("metadata", "finalizers"), text, RULE)
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        yield finding.invalid(("metadata", "finalizers"), finalizers, "orphan and foregroundDeletion cannot both be set", RULE)


def drop_repeated_owners(data: Data) -> Iterator[str]:
    """Owner references with one UID are one; the client gets a warning."""
    owners = data["metadata"].get("ownerReferences") or []
    kept: dict[str, Data] = {}
    for owner in owners:
        form = encoded(owner)
        if form in kept:
            yield f".metadata.ownerReferences contains duplicate entries, kept once; duplicate UID(s): {owner.get('uid')}"
        else:
            kept[form] = owner
    if len(kept) != len(owners):
        data["metadata"]["ownerReferences"] = list(kept.values())


def unknown(resource: ServedResource, finding: Finding) -> str:
    """Kubernetes' sentence; for the kinds that are Paddock's alone with the name that may be meant."""
    plain = f'unknown field "{finding.field}"'
    return finding.message if resource.declared and not resource.strategic and finding.message.startswith(plain) else plain
