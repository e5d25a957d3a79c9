"""The spec and the status of a Machine; the members are in `fields` and `ownfields`."""

from typing import Annotated

from paddock.dialects.vitistack.kinds.fields import (
    BOOT_CLASSES,
    MOST_NETWORKS,
    Disks,
    Domain,
    MachineCloudInit,
    MachineNetwork,
    MachineResources,
    OperatingSystem,
)
from paddock.dialects.vitistack.kinds.ownfields import PROVIDER, CardStatus, DiskStatus, OwnBackup, OwnCpu, OwnNetwork, OwnProviderConfig
from paddock.kubernetes.meta.conditions import Condition
from paddock.kubernetes.schema.field import Field, Object, Time

_NO_CLOUD = "the provider kubevirt has none of it"
_PROVIDER = 'supported values: "kubevirt"; machines of other providers belong to the operators of those'

_KEY = "^(ssh|ecdsa|sk)-[A-Za-z0-9@.-]+ +[A-Za-z0-9+/=]+( .*)?$"

PHASES = ("Pending", "Creating", "Running", "Stopped", "Failed")


class MachineSpec(Object):
    """The desired machine in one of two forms: a template and fields on top of it, or Vitistack's own, with a class and a provider."""

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
    os: Annotated[OperatingSystem | None, Field("The image to install from, and what the guest is.")] = None
    provider: Annotated[
        str | None,
        Field("Own form, required there: who makes the machine; only kubevirt does here.", enum=(PROVIDER,), message=_PROVIDER),
    ] = None
    machineClass: Annotated[
        str | None,
        Field("Own form: MachineClass to start from: an object, else a built-in one.", min_length=1, format="dns1123-subdomain"),
    ] = None
    name: Annotated[str | None, Field("Own form: host name of the guest; default: the machine's name.", format="dns1123-label")] = None
    cpu: Annotated[OwnCpu | None, Field("Own form: processors, over the class's.")] = None
    memory: Annotated[int | None, Field("Own form: memory in bytes, over the class's; 0 means the class's.", ge=0)] = None
    network: Annotated[OwnNetwork | None, Field("Own form: the network of the card.")] = None
    sshKeys: Annotated[
        list[Annotated[str, Field(pattern=_KEY, message="must be a public key as OpenSSH writes it, such as ssh-ed25519 AAAA...")]] | None,
        Field("Own form: public keys for the guest's default user.", max_items=64),
    ] = None
    userData: Annotated[str | None, Field("Own form: user data for cloud-init; cloudInit must then give none.", secret=True)] = None
    machineType: Annotated[str | None, Field("Own form: type of a cloud provider.", not_honoured=_NO_CLOUD)] = None
    providerConfig: Annotated[OwnProviderConfig | None, Field("Own form: settings of a cloud provider.", not_honoured=_NO_CLOUD)] = None
    tags: Annotated[
        dict[str, Annotated[str, Field()]] | None, Field("Own form: tags at a cloud provider.", not_honoured="write labels on the Machine")
    ] = None
    securityGroups: Annotated[list[str] | None, Field("Own form: security groups.", max_items=64, not_honoured=_NO_CLOUD)] = None
    monitoring: Annotated[bool | None, Field("Own form: whether a cloud provider monitors it.", not_honoured=_NO_CLOUD)] = None
    backup: Annotated[OwnBackup | None, Field("Own form: backups.", not_honoured="snapshots have schedules of their own")] = None


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
    state: Annotated[str | None, Field("Own form: what the VirtualMachine says of itself, such as Running or Starting.")] = None
    provider: Annotated[str | None, Field("Own form: who makes the machine.")] = None
    message: Annotated[str | None, Field("Own form: why the machine is not ready, or that it runs.")] = None
    ipv6Addresses: Annotated[list[str] | None, Field("Own form: the addresses of IPv6; ipAddresses then has those of IPv4 only.")] = None
    publicIPAddresses: Annotated[list[str] | None, Field("Own form: the addresses that the internet can reach.")] = None
    privateIPAddresses: Annotated[list[str] | None, Field("Own form: the others.")] = None
    networkInterfaces: Annotated[list[CardStatus] | None, Field("Own form: the cards.")] = None
    disks: Annotated[list[DiskStatus] | None, Field("Own form: the disks on claims.")] = None
    failureReason: Annotated[str | None, Field("Own form: why the machine failed, in one word.")] = None
    failureMessage: Annotated[str | None, Field("Own form: why the machine failed.")] = None
