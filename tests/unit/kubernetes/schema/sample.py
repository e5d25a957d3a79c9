"""A kind that uses everything a declaration can say, so that tests of the schema need no dialect."""

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from paddock.kubernetes.meta.objects import Resource, TemplateMeta
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.field import Empty, Field, Freeform, IntOrString, Object, Quantity, Time
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AGE, AdmissionSettings, Cel, Column, Kind, Scale, Version, rule, transition


def declare(name: str, *, base: type[Object] = Object, **fields: Any) -> type[Object]:
    """A class with optional fields of these annotations."""
    meta: Any = type(Object)
    made: type[Object] = meta(name, (base,), {"__annotations__": fields, "__module__": __name__, **dict.fromkeys(fields)})
    return made


class Port(Object):
    """An open port."""

    number: Annotated[int, Field("Number of the port.", required=True, ge=1, le=65535, bits=32)] = 0
    protocol: Annotated[str, Field("Protocol.", enum=("TCP", "UDP"))] = "TCP"
    target: Annotated[IntOrString | None, Field("Port of the guest.", ge=1, le=65535, pattern="^[a-z]+$")] = None


class Disk(Object):
    """A disk."""

    STRANGERS = {"capacity": "use size"}

    name: Annotated[str, Field("Name of the disk.", required=True, format="dns1123-label")] = ""
    size: Annotated[Quantity, Field("Size of the disk.", required=True, needed="say how large", positive=True, whole=True)] = "0"
    bus: Annotated[str, Field("Bus of the disk.", enum=("virtio", "sata"), hints={"ide": "use sata"})] = "virtio"


class Owner(Object):
    """Whose it is."""

    user: Annotated[str, Field("The user.", required=True)] = ""


class Spec(Object):
    """What is wanted."""

    count: Annotated[int, Field("How many.", ge=1)] = 1
    share: Annotated[float | None, Field("Part of the whole.", ge=0, le=1)] = None
    small: Annotated[int | None, Field("A short number.", bits=32)] = None
    running: Annotated[bool, Field("Whether it runs.")] = True
    nickname: Annotated[
        str | None, Field("A short name.", min_length=2, max_length=8, pattern="^[a-z]+$", message="must be a small word")
    ] = None
    storageClass: Annotated[str | None, Field("Class; empty means none.", format="dns1123-subdomain", empty_is_unset=True)] = None
    password: Annotated[str | None, Field("Secret word.", min_length=4, secret=True)] = None
    timeout: Annotated[str | None, Field("How long to wait.", format="duration")] = None
    address: Annotated[str | None, Field("Address.", format="ip")] = None
    network: Annotated[str | None, Field("Network.", format="cidr")] = None
    memory: Annotated[Quantity, Field("Memory.", at_least="1Mi", whole=True)] = "1Gi"
    reserve: Annotated[Quantity | None, Field("Anything.")] = None
    since: Annotated[Time | None, Field("From when on.", nullable=True)] = None
    mode: Annotated[str | None, Field("How.", enum=("Fast", "Safe", "Off"), nullable=True)] = None
    multiqueue: Annotated[bool | None, Field("Several queues.", aliases=("multiQueue",))] = None
    tags: Annotated[list[Annotated[str, Field(min_length=1)]] | None, Field("Words.", max_items=3, min_items=1, unique=True)] = None
    disks: Annotated[list[Disk], Field("Disks.", max_items=4, keys=("name",))] = []
    ports: Annotated[list[Port] | None, Field("Ports.", keys=("number", "protocol"))] = None
    modes: Annotated[list[str], Field("Modes.")] = msgspec.field(default_factory=lambda: ["a", "b"])
    labels: Annotated[
        dict[str, Annotated[str, Field(format="label-value")]] | None, Field("Labels.", key_format="label-key", min_items=1, max_items=3)
    ] = None
    limits: Annotated[dict[str, Quantity] | None, Field("Limits.")] = None
    template: Annotated[TemplateMeta | None, Field("Labels for what is made.")] = None
    agent: Annotated[Empty | None, Field("Whether there is an agent.")] = None
    owner: Annotated[Owner | None, Field("Whose it is; an empty one is none.", empty_is_unset=True)] = None
    extra: Annotated[Freeform | None, Field("Free.", not_honoured="nobody reads it")] = None
    anything: Annotated[Any, Field("Anything at all.")] = None
    legacy: Annotated[str | None, Field("Old.", deprecated="use nickname")] = None


class Status(Object):
    """What was observed."""

    replicas: Annotated[int | None, Field("How many there are.")] = None
    labelSelector: Annotated[str | None, Field("Which they are.")] = None


class Sample(Resource):
    """A thing that shows everything a declaration can say."""

    spec: Annotated[Spec, Field("What is wanted.", required=True)] = Spec()
    status: Annotated[Status | None, Field("What was observed.")] = None


@rule(
    "sample/runs-alone",
    Cel("spec", "!self.running || self.count == 1", "a running one is alone", ".count"),
    Cel("spec.disks[]", "self.bus != 'sata' || self.name != 'root'", "the root disk is not on sata", ".bus", "FieldValueForbidden"),
)
def runs_alone(sample: Sample, settings: AdmissionSettings) -> Iterator[Finding]:
    """A running one is alone, and its root disk is fast."""
    if sample.spec.running and sample.spec.count > 1:
        yield finding.invalid(("spec", "count"), sample.spec.count, "a running one is alone", "sample/runs-alone")
    for index, disk in enumerate(sample.spec.disks):
        if disk.bus == "sata" and disk.name == "root":
            yield finding.forbidden(("spec", "disks", index, "bus"), "the root disk is not on sata", "sample/runs-alone")


@rule("sample/name", Cel("", "self.metadata.name.size() <= 63", "must be no more than 63 characters", ".metadata.name"))
def name_is_short(sample: Sample, settings: AdmissionSettings) -> Iterator[Finding]:
    """The name fits into a label."""
    if len(sample.metadata.name) > 63:
        yield finding.invalid(("metadata", "name"), sample.metadata.name, "must be no more than 63 characters", "sample/name")


@transition("sample/grows", Cel("spec", "self.count >= oldSelf.count", "never fewer", ".count", "FieldValueNotFound"))
def grows(old: Sample, new: Sample, settings: AdmissionSettings) -> Iterator[Finding]:
    """There are never fewer than before."""
    if new.spec.count < old.spec.count:
        yield finding.forbidden(("spec", "count"), "never fewer", "sample/grows")


SAMPLE = Kind(
    group="test.paddock.dev",
    kind="Sample",
    plural="samples",
    cls=Sample,
    dialect="sample",
    versions=(Version("v1"), Version("v1beta1", storage=False, deprecated="v1beta1 goes; use v1")),
    short_names=("smp",),
    categories=("all",),
    columns=(Column("Count", ".spec.count", "integer", "How many."), AGE, Column("Running", ".spec.running", "boolean", wide=True)),
    scale=Scale(replicas=".spec.count"),
    rules=(runs_alone, name_is_short),
    transitions=(grows,),
)
