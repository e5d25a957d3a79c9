"""The members of a machine in Vitistack's own form (docs/design/0027-vitistack-forms.md).

Nothing here has a default in the schema: a default would be a member of this form in every machine of the document's.
"""

from typing import Annotated

from paddock.kubernetes.schema.field import Field, Object

PROVIDER = "kubevirt"
_NO_CLOUD = "the provider kubevirt has none of it"
_TEXTS = dict[str, Annotated[str, Field()]]


class OwnCpu(Object):
    """The processors; the guest sees the product of the three. What is left out comes from the class, else it is 2, 1 and 1."""

    cores: Annotated[int | None, Field("Cores per socket.", ge=1, le=256)] = None
    threadsPerCore: Annotated[int | None, Field("Threads per core.", ge=1, le=8)] = None
    sockets: Annotated[int | None, Field("Sockets.", ge=1, le=16)] = None


class OwnInterface(Object):
    """A network interface of a cloud provider."""

    name: Annotated[str | None, Field("Name of the interface.")] = None
    subnet: Annotated[str | None, Field("Its subnet.")] = None
    securityGroups: Annotated[list[str] | None, Field("Its security groups.", max_items=64)] = None
    primary: Annotated[bool | None, Field("Whether it is the first.")] = None


class OwnNetwork(Object):
    """The network of the machine's one card; without a name the card is on the pod network."""

    networkNamespaceName: Annotated[
        str | None,
        Field("Name of a NetworkConfiguration in the same namespace that the card is attached to.", format="dns1123-subdomain"),
    ] = None
    vpc: Annotated[str | None, Field("VPC of a cloud provider.", not_honoured=_NO_CLOUD)] = None
    subnet: Annotated[str | None, Field("Subnet of a cloud provider.", not_honoured=_NO_CLOUD)] = None
    assignPublicIP: Annotated[bool | None, Field("Whether to give a public address.", not_honoured=_NO_CLOUD)] = None
    privateIP: Annotated[str | None, Field("Private address.", not_honoured="give it in cloudInit.networkData")] = None
    publicIP: Annotated[str | None, Field("Public address.", not_honoured=_NO_CLOUD)] = None
    interfaces: Annotated[list[OwnInterface] | None, Field("Interfaces.", max_items=36, not_honoured=_NO_CLOUD)] = None


class OwnCredentials(Object):
    """The Secret with the credentials of a cloud provider."""

    secretName: Annotated[str | None, Field("Name of the Secret.")] = None
    namespace: Annotated[str | None, Field("Its namespace.")] = None


class OwnProviderConfig(Object):
    """Settings of a cloud provider."""

    name: Annotated[str | None, Field("Name of the cloud provider.")] = None
    region: Annotated[str | None, Field("Region.")] = None
    zone: Annotated[str | None, Field("Zone.")] = None
    config: Annotated[_TEXTS | None, Field("Other settings.")] = None
    credentialsRef: Annotated[OwnCredentials | None, Field("Credentials.")] = None


class OwnBackup(Object):
    """Backups by a cloud provider."""

    enabled: Annotated[bool | None, Field("Whether to back up.")] = None
    schedule: Annotated[str | None, Field("When, as cron writes it.")] = None
    retentionDays: Annotated[int | None, Field("Days to keep a backup.")] = None


class CloudInitKey(Object):
    """A key of a Secret or ConfigMap in the machine's namespace."""

    name: Annotated[str, Field("Name of the object.", required=True, format="dns1123-subdomain")] = ""
    key: Annotated[
        str | None, Field("Key of the document; default: userdata for user data, networkdata for network data.", format="data-key")
    ] = None


class CardStatus(Object):
    """A card of the running machine."""

    name: Annotated[str | None, Field("Name of the card.")] = None
    macAddress: Annotated[str | None, Field("Its address.")] = None
    ipAddresses: Annotated[list[str] | None, Field("Its IP addresses.")] = None
    ipv6Addresses: Annotated[list[str] | None, Field("Those of IPv6.")] = None
    state: Annotated[str | None, Field("State of the link.")] = None
    type: Annotated[str | None, Field("Who reported it: domain, guest-agent or both.")] = None


class DiskStatus(Object):
    """A disk of the running machine that lies on a claim."""

    name: Annotated[str | None, Field("Name of the disk.")] = None
    size: Annotated[int | None, Field("Size of the claim in bytes.")] = None
    pvcName: Annotated[str | None, Field("Name of the claim.")] = None
    volumeMode: Annotated[str | None, Field("Volume mode of the claim.")] = None
    accessModes: Annotated[list[str] | None, Field("Access modes of the claim.")] = None
    device: Annotated[str | None, Field("Device in the guest, such as /dev/vda.")] = None
