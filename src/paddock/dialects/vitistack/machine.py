"""`vitistack.io/v1alpha1 Machine`: the kind. Its members are in `fields`, its rules in `rules`."""

from typing import Annotated

from paddock.dialects.vitistack import rules
from paddock.dialects.vitistack.fields import (
    BOOT_CLASSES,
    HINT,
    MOST_NETWORKS,
    Disks,
    Domain,
    MachineCloudInit,
    MachineNetwork,
    MachineResources,
    OperatingSystem,
)
from paddock.meta.conditions import Condition
from paddock.meta.objects import Resource
from paddock.schema.field import Field, Object, Time
from paddock.schema.kind import AGE, Column, Kind, Version

PHASES = ("Pending", "Creating", "Running", "Stopped", "Failed")


class MachineSpec(Object):
    """The desired machine: a template, and fields on top of it."""

    STRANGERS = dict.fromkeys(
        (
            "machineClass",
            "memory",
            "cpu",
            "network",
            "provider",
            "providerConfig",
            "name",
            "instanceType",
            "region",
            "zone",
            "sshKeys",
            "tags",
            "securityGroups",
            "backup",
            "monitoring",
        ),
        HINT,
    )

    template: Annotated[
        str | None,
        Field("Template to start from: small, medium, large or the name of a MachineTemplate.", empty_is_unset=True),
    ] = None
    resources: Annotated[MachineResources | None, Field("Processors and memory, over the template's.")] = None
    disks: Disks = []
    networks: Annotated[
        list[MachineNetwork],
        Field("The network cards; none means one card on the pod network.", max_items=MOST_NETWORKS, keys=("name",)),
    ] = []
    bootOrder: Annotated[
        list[Annotated[str, Field(enum=BOOT_CLASSES)]] | None,
        Field("What to boot from, first things first: disk (the root disk), network (the first card), cdrom.", unique=True),
    ] = None
    cloudInit: Annotated[MachineCloudInit | None, Field("First-boot configuration; `{}` gives the guest an empty one.")] = None
    domain: Annotated[Domain | None, Field("Mainboard, features and firmware.")] = None
    os: Annotated[OperatingSystem | None, Field("The image to install from.")] = None


class MachineStatus(Object):
    """The observed state of a machine."""

    phase: Annotated[str | None, Field("Where the machine is in its life.", enum=PHASES)] = None
    conditions: Annotated[list[Condition] | None, Field("Ready, VirtualMachineReady, StorageReady and NetworkReady.", keys=("type",))] = (
        None
    )
    vmName: Annotated[str | None, Field("Name of the generated VirtualMachine.")] = None
    vmiName: Annotated[str | None, Field("Name of the running VirtualMachineInstance.")] = None
    ipAddresses: Annotated[list[str] | None, Field("Addresses of the guest, IPv4 first.")] = None
    nodeName: Annotated[str | None, Field("Node that runs the machine.")] = None
    lastUpdated: Annotated[Time | None, Field("When this status last changed.")] = None
    resourceVersion: Annotated[str | None, Field("Resource version of the generated VirtualMachine when last seen.")] = None
    claims: Annotated[list[str] | None, Field("Claims that the VirtualMachine has used. One of them that is lost is not made again.")] = (
        None
    )
    observedRetry: Annotated[str | None, Field("Value of the annotation vitistack.io/retry that was acted on.")] = None


class Machine(Resource):
    """A virtual machine that is made from a template, with overrides for processors, memory, disks and networks."""

    spec: Annotated[MachineSpec, Field("What the machine should be.", required=True)] = MachineSpec()
    status: Annotated[MachineStatus | None, Field("What was observed.")] = None


KINDS = (
    Kind(
        group="vitistack.io",
        kind="Machine",
        plural="machines",
        singular="machine",
        short_names=("m",),
        cls=Machine,
        dialect="vitistack",
        versions=(Version("v1alpha1"),),
        columns=(
            Column("Phase", ".status.phase"),
            Column("Template", ".spec.template"),
            Column("IPs", ".status.ipAddresses"),
            Column("Node", ".status.nodeName"),
            AGE,
            Column("Ready", ".status.conditions[?(@.type=='Ready')].status", wide=True),
            Column("VM", ".status.vmName", wide=True),
        ),
        rules=rules.RULES,
        transitions=rules.TRANSITIONS,
    ),
)
