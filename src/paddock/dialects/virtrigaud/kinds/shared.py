"""Shared parts of VirtRigaud's kinds: references, conditions, and the vocabularies that stand in more than one of them."""

from typing import Annotated

from paddock.contract.specs import NAME_MESSAGE, NAME_PATTERN
from paddock.kubernetes.schema.field import Field, Object, Time
from paddock.kubernetes.schema.kind import Version

GROUP = "infra.virtrigaud.io"
VERSIONS = (Version("v1beta1"),)
API_VERSION = "infra.virtrigaud.io/v1beta1"

ENVIRONMENTS = ("dev", "staging", "prod", "test", "qa", "uat")
DISK_TYPES = ("thin", "thick", "eagerzeroedthick", "ssd", "hdd")
CLASS_DISK_TYPES = (*DISK_TYPES, "nvme")
KEY_PROVIDERS = ("standard", "hardware", "external")
PROVIDER_TYPES = ("vsphere", "libvirt", "firecracker", "qemu", "proxmox")

Environment = Annotated[str | None, Field("Environment this belongs to.", enum=ENVIRONMENTS)]


class ObjectRef(Object):
    """The name of an object, here or in another namespace."""

    name: Annotated[str, Field("Name of the object.", required=True, pattern=NAME_PATTERN, max_length=253, message=NAME_MESSAGE)] = ""
    namespace: Annotated[
        str | None,
        Field(
            "Namespace of the object; default: the namespace of the object that refers to it.",
            pattern=NAME_PATTERN,
            max_length=63,
            message=NAME_MESSAGE,
        ),
    ] = None


class SecretName(Object):
    """The name of a Secret or of another core object in the same namespace."""

    name: Annotated[str, Field("Name of the object.", max_length=253)] = ""


class StatusCondition(Object):
    """One observed aspect of an object."""

    type: Annotated[str, Field("The aspect.", required=True, min_length=1, max_length=316)] = ""
    status: Annotated[str, Field("Whether it holds.", required=True, enum=("True", "False", "Unknown"))] = ""
    reason: Annotated[str, Field("One word for programs.", required=True, min_length=1, max_length=1024)] = ""
    message: Annotated[str, Field("A sentence for people: what, why, what to do.", required=True, max_length=32768)] = ""
    lastTransitionTime: Annotated[Time, Field("When the status last changed.", required=True)] = ""
    observedGeneration: Annotated[int | None, Field("The generation this was observed for.", ge=0)] = None


Conditions = Annotated[list[StatusCondition] | None, Field("What was observed, aspect by aspect.", keys=("type",))]
ObservedGeneration = Annotated[int | None, Field("The generation that was last acted upon.")]


class ProviderPart(Object):
    """The state of something at one provider."""

    available: Annotated[bool, Field("Whether the provider has it.", required=True)] = False
    id: Annotated[str | None, Field("Its identifier there.")] = None
    lastUpdated: Annotated[Time | None, Field("When this was last looked at.")] = None
    message: Annotated[str | None, Field("What the provider says about it.")] = None
