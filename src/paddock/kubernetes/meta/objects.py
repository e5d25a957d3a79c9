"""The envelope of every object: `apiVersion`, `kind`, `metadata`."""

from typing import Annotated

from paddock.kubernetes.schema.field import Field, Freeform, Object, Time

Labels = Annotated[
    dict[str, Annotated[str, Field(format="label-value")]] | None,
    Field("Labels that select and organize.", key_format="label-key"),
]
Annotations = Annotated[dict[str, str] | None, Field("Notes that do not select.", key_format="label-key")]


class OwnerReference(Object):
    """The object that this one goes with when it is deleted."""

    apiVersion: Annotated[str, Field("Group and version of the owner.", required=True)] = ""
    kind: Annotated[str, Field("Kind of the owner.", required=True)] = ""
    name: Annotated[str, Field("Name of the owner.", required=True)] = ""
    uid: Annotated[str, Field("UID of the owner.", required=True)] = ""
    controller: Annotated[bool | None, Field("Whether the owner manages this object.")] = None
    blockOwnerDeletion: Annotated[bool | None, Field("Whether the owner waits for this object in a foreground deletion.")] = None


class ObjectMeta(Object):
    """Standard metadata of a stored object."""

    name: Annotated[str, Field("Name, unique for its kind in the namespace.", format="dns1123-subdomain", zero=True)] = ""
    generateName: Annotated[str | None, Field("Prefix of a generated name.")] = None
    namespace: Annotated[str | None, Field("Namespace the object lives in.", format="dns1123-label", empty_is_unset=True)] = None
    labels: Labels = None
    annotations: Annotations = None
    ownerReferences: Annotated[list[OwnerReference] | None, Field("Objects this one depends on.")] = None
    finalizers: Annotated[list[str] | None, Field("Who has to agree before the object goes.")] = None
    uid: Annotated[str | None, Field("Set by the server.")] = None
    resourceVersion: Annotated[str | None, Field("Set by the server.")] = None
    generation: Annotated[int | None, Field("Set by the server: counts changes of the spec.")] = None
    creationTimestamp: Annotated[Time | None, Field("Set by the server.")] = None
    deletionTimestamp: Annotated[Time | None, Field("Set by the server.")] = None
    deletionGracePeriodSeconds: Annotated[int | None, Field("Set by the server.")] = None
    selfLink: Annotated[str | None, Field("No longer used.")] = None
    managedFields: Annotated[list[Freeform] | None, Field("Set by the server: who applied which field.")] = None


class TemplateMeta(Object):
    """Labels and annotations that are put on what a template makes; everything else a user writes is kept."""

    OPEN = True

    name: Annotated[str | None, Field("Name, where the template says that it is used.")] = None
    namespace: Annotated[str | None, Field("Namespace, where the template says that it is used.")] = None
    labels: Labels = None
    annotations: Annotations = None


class Resource(Object):
    """Base of every kind."""

    apiVersion: Annotated[str, Field("Group and version of this object.", required=True)] = ""
    kind: Annotated[str, Field("Kind of this object.", required=True)] = ""
    metadata: Annotated[ObjectMeta, Field("Name, labels, annotations.", required=True)] = ObjectMeta()


def owned_by(owner: Resource) -> list[OwnerReference] | None:
    """The reference to the owner that manages an object; None without its UID: a wrong one would have the object deleted."""
    if not owner.metadata.uid:
        return None
    meta = owner.metadata
    return [
        OwnerReference(
            apiVersion=owner.apiVersion, kind=owner.kind, name=meta.name, uid=meta.uid or "", controller=True, blockOwnerDeletion=True
        )
    ]


class LocalReference(Object):
    """The name of an object in the same namespace."""

    name: Annotated[str, Field("Name of the object.", required=True, format="dns1123-subdomain", max_length=253)] = ""
