"""Schemas of what every API document refers to besides its own kinds: list metadata, statuses, options, scale."""

from typing import Any

from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.field import Object
from paddock.kubernetes.schema.generate import structural
from paddock.kubernetes.schema.generate.structural import Schema

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
OBJECT_META = f"{META}.ObjectMeta"
LIST_META = f"{META}.ListMeta"
STATUS = f"{META}.Status"
DELETE_OPTIONS = f"{META}.DeleteOptions"
PATCH = f"{META}.Patch"
SCALE = "io.k8s.api.autoscaling.v1.Scale"


def ref(name: str) -> Schema:
    """A reference to a schema of the same document."""
    return {"$ref": f"#/components/schemas/{name}"}


def embedded(name: str, text: str) -> Schema:
    """A member that is described elsewhere, with a text of its own, which must not stand beside a reference."""
    return {"description": text, "allOf": [ref(name)]}


def text(description: str) -> Schema:
    return {"description": description, "type": "string"}


def number(description: str, bits: int = 64) -> Schema:
    return {"description": description, "type": "integer", "format": f"int{bits}"}


def flag(description: str) -> Schema:
    return {"description": description, "type": "boolean"}


def listing(description: str, items: Schema) -> Schema:
    """A list that is written as a whole."""
    return {"description": description, "type": "array", "items": items, "x-kubernetes-list-type": "atomic"}


def record(description: str, **properties: Schema) -> Schema:
    return {"description": description, "type": "object", "properties": properties}


def kinds(*names: tuple[str, str, str]) -> list[dict[str, str]]:
    """The value of `x-kubernetes-group-version-kind`."""
    return [{"group": group, "version": version, "kind": kind} for group, version, kind in names]


def object_meta(cls: type[Object]) -> Schema:
    """The schema of metadata from its declaration, with what clients need to merge it as the server does."""
    schema = structural.node(shape.shape_of(cls))
    properties = schema["properties"]
    properties["ownerReferences"].update(
        {
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
            "x-kubernetes-patch-merge-key": "uid",
            "x-kubernetes-patch-strategy": "merge",
        }
    )
    properties["finalizers"].update({"x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge"})
    properties["managedFields"]["x-kubernetes-list-type"] = "atomic"
    properties["creationTimestamp"]["description"] = (
        "CreationTimestamp is a timestamp of the moment the object was stored; set by the server."
    )
    return schema


_LIST_META = record(
    "Metadata of a list.",
    **{
        "continue": text("Token for the next page; empty on the last one."),
        "remainingItemCount": number("How many objects follow this page, where that is known."),
        "resourceVersion": text("The state of the server that the list shows."),
        "selfLink": text("No longer used."),
    },
)
_CAUSE = record(
    "One reason for a failure.",
    field=text("The field that it is about, such as spec.disks[0].name."),
    message=text("The reason, for people."),
    reason=text("The reason, for programs."),
)
_DETAILS = record(
    "What a failure is about.",
    causes=listing("All reasons of the failure.", _CAUSE),
    group=text("Group of the object."),
    kind=text("Kind or resource of the object."),
    name=text("Name of the object."),
    retryAfterSeconds=number("How long to wait before trying again.", 32),
    uid=text("UID of the object."),
)
_OPTIONS = record(
    "How an object is deleted.",
    apiVersion=text("Group and version of these options."),
    kind=text("Kind of these options."),
    dryRun=listing("All: do everything but store.", {"type": "string"}),
    gracePeriodSeconds=number("Seconds until the object goes; 0 is at once."),
    orphanDependents=flag("No longer used: see propagationPolicy."),
    preconditions=record(
        "What must hold of the object.", resourceVersion=text("The version it must have."), uid=text("The UID it must have.")
    ),
    propagationPolicy=text("What becomes of dependents: Orphan, Background or Foreground."),
)


def _status() -> Schema:
    return {
        **record(
            "The answer to a request that has no object as its answer.",
            apiVersion=text("Group and version of this answer."),
            kind=text("Kind of this answer."),
            metadata=embedded(LIST_META, "Metadata of the answer."),
            status=text("Success or Failure."),
            message=text("What happened, for people."),
            reason=text("What happened, for programs."),
            details=_DETAILS,
            code=number("The HTTP status.", 32),
        ),
        "x-kubernetes-group-version-kind": kinds(("", "v1", "Status")),
    }


def _scale() -> Schema:
    return {
        **record(
            "How many there should be, and are.",
            apiVersion=text("Group and version of this object."),
            kind=text("Kind of this object."),
            metadata=embedded(OBJECT_META, "Metadata of the object that is scaled."),
            spec=record("What is wanted.", replicas=number("How many there should be.", 32)),
            status=record("What was observed.", replicas=number("How many there are.", 32), selector=text("Labels of what is counted.")),
        ),
        "x-kubernetes-group-version-kind": kinds(("autoscaling", "v1", "Scale")),
    }


def common(group: str, version: str, metadata: Schema, *, scale: bool) -> dict[str, Any]:
    """The schemas that the document of a group and version needs besides its kinds."""
    found = {
        OBJECT_META: metadata,
        LIST_META: _LIST_META,
        STATUS: _status(),
        DELETE_OPTIONS: {**_OPTIONS, "x-kubernetes-group-version-kind": kinds((group, version, "DeleteOptions"))},
        PATCH: {"description": "A patch, in one of the forms that its media type names.", "type": "object"},
    }
    return {**found, SCALE: _scale()} if scale else found
