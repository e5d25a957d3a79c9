"""`v1 Event`."""

from typing import Annotated

from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema.field import Field, Freeform, Object, Time
from paddock.kubernetes.schema.kind import Column, Kind


class ObjectReference(Object):
    """The object an event is about."""

    apiVersion: Annotated[str | None, Field("Group and version.")] = None
    kind: Annotated[str | None, Field("Kind.")] = None
    name: Annotated[str | None, Field("Name.")] = None
    namespace: Annotated[str | None, Field("Namespace.")] = None
    uid: Annotated[str | None, Field("UID.")] = None
    resourceVersion: Annotated[str | None, Field("Version of the object.")] = None
    fieldPath: Annotated[str | None, Field("Part of the object.")] = None


class EventSource(Object):
    """The source of an event."""

    component: Annotated[str | None, Field("Part of the system.")] = None
    host: Annotated[str | None, Field("Node.")] = None


class Event(Resource):
    """Something that happened to an object."""

    involvedObject: Annotated[ObjectReference, Field("What it happened to.", required=True)] = ObjectReference()
    reason: Annotated[str | None, Field("What happened, in one word.", max_length=128)] = None
    message: Annotated[str | None, Field("What happened, for people.")] = None
    type: Annotated[str | None, Field("Normal or Warning.")] = None
    count: Annotated[int | None, Field("How often it happened.")] = None
    firstTimestamp: Annotated[Time | None, Field("When it first happened.", nullable=True)] = None
    lastTimestamp: Annotated[Time | None, Field("When it last happened.", nullable=True)] = None
    eventTime: Annotated[Time | None, Field("When it happened.", nullable=True)] = None
    source: Annotated[EventSource | None, Field("Who tells.")] = None
    series: Annotated[Freeform | None, Field("How often it happened, in the newer form.")] = None
    action: Annotated[str | None, Field("What was being done.")] = None
    related: Annotated[ObjectReference | None, Field("Another object that has to do with it.")] = None
    reportingComponent: Annotated[str | None, Field("Who tells, in the newer form.")] = None
    reportingInstance: Annotated[str | None, Field("Which instance of it tells.")] = None


KINDS = (
    Kind(
        group="",
        kind="Event",
        plural="events",
        singular="event",
        short_names=("ev",),
        cls=Event,
        dialect="core",
        columns=(
            Column("Last Seen", ".lastTimestamp", "date"),
            Column("Type", ".type"),
            Column("Reason", ".reason"),
            Column("Object", ".involvedObject.name"),
            Column("Message", ".message"),
        ),
        status=False,
        builtin=True,
    ),
)
