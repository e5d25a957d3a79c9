"""`cdi.kubevirt.io/v1beta1` CDIConfig (the one object `config`) and CDI (docs/spec/kubevirt.md 5.7)."""

from collections.abc import Iterator
from typing import Annotated

from paddock.kubernetes.meta.conditions import Condition
from paddock.kubernetes.meta.objects import LocalReference, Resource
from paddock.kubernetes.meta.storage import ResourceRequirements
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.field import Empty, Field, Freeform, Object
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AGE, AdmissionSettings, Column, Kind, Version, rule
from paddock.kubevirt.kinds.datavolume import NO_PODS

_NOT_INSTALLED = "Paddock brings its own storage controllers; there is no installation to configure"
TLS_VERSIONS = ("VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13")
_PERCENT = Field(
    "Part of a volume that is set aside for the filesystem, from 0 to 1.",
    pattern=r"^(0(\.[0-9]{1,3})?|1)$",
    message="must be a number from 0 to 1 with at most three decimals, as a text",
)


class FilesystemOverhead(Object, rename={"global_": "global"}):
    """The share of a volume reserved for the filesystem."""

    global_: Annotated[str | None, _PERCENT] = None
    storageClass: Annotated[dict[str, Annotated[str, _PERCENT]] | None, Field("For single classes, by their name.")] = None


class ImportProxy(Object):
    """The proxy that images are fetched through."""

    HTTPProxy: Annotated[str | None, Field("Proxy for http addresses.", secret=True)] = None
    HTTPSProxy: Annotated[str | None, Field("Proxy for https addresses.", secret=True)] = None
    noProxy: Annotated[str | None, Field("Hosts and networks that need no proxy, by commas.")] = None
    trustedCAProxy: Annotated[str | None, Field("ConfigMap with the certificate authorities of the proxy.")] = None


class CustomTlsProfile(Object):
    """TLS versions and ciphers by name."""

    ciphers: Annotated[list[str], Field("Ciphers, as OpenSSL names them.", required=True)] = []
    minTLSVersion: Annotated[str, Field("Oldest version of TLS.", required=True, enum=TLS_VERSIONS)] = ""


class TlsSecurityProfile(Object):
    """TLS versions and ciphers."""

    type: Annotated[str | None, Field("The profile.", enum=("Old", "Intermediate", "Modern", "Custom"))] = None
    old: Annotated[Empty | None, Field("For clients of long ago.", nullable=True)] = None
    intermediate: Annotated[Empty | None, Field("For most clients.", nullable=True)] = None
    modern: Annotated[Empty | None, Field("For clients with TLS 1.3.", nullable=True)] = None
    custom: Annotated[CustomTlsProfile | None, Field("A profile of one's own.", nullable=True)] = None


class PodResourceClaim(Object):
    """A resource claim that a pod uses."""

    name: Annotated[str, Field("Name of the claim.", required=True)] = ""
    request: Annotated[str | None, Field("Which part of it; default: all.")] = None


class PodResourceRequirements(ResourceRequirements):
    """What a pod asks for."""

    claims: Annotated[list[PodResourceClaim] | None, Field("Resource claims.", keys=("name",))] = None


class CDIConfigSpec(Object):
    """The administrator's choices for disks and their images."""

    uploadProxyURLOverride: Annotated[str | None, Field("Address clients upload to.")] = None
    importProxy: Annotated[ImportProxy | None, Field("The proxy that images are fetched through.")] = None
    scratchSpaceStorageClass: Annotated[str | None, Field("Class for scratch space.", not_honoured=NO_PODS)] = None
    podResourceRequirements: Annotated[PodResourceRequirements | None, Field("What a transfer may use.", not_honoured=NO_PODS)] = None
    featureGates: Annotated[list[str] | None, Field("Features that are switched on.")] = None
    webhookPvcRendering: Annotated[
        str | None,
        Field(
            "Whether claims with the label cdi.kubevirt.io/applyStorageProfile are completed from StorageProfiles.",
            enum=("Enabled", "Disabled"),
            not_honoured="only the claims of DataVolumes are completed",
        ),
    ] = None
    filesystemOverhead: Annotated[FilesystemOverhead | None, Field("What is set aside for the filesystem.")] = None
    preallocation: Annotated[bool | None, Field("Whether disks are allocated at once.")] = None
    insecureRegistries: Annotated[list[str] | None, Field("Registries whose certificates are not checked.")] = None
    dataVolumeTTLSeconds: Annotated[
        int | None,
        Field(
            "When a finished DataVolume is deleted.", bits=32, not_honoured="DataVolumes are not collected; upstream removed this in v1.62"
        ),
    ] = None
    tlsSecurityProfile: Annotated[TlsSecurityProfile | None, Field("TLS versions and ciphers.", not_honoured=_NOT_INSTALLED)] = None
    imagePullSecrets: Annotated[list[LocalReference] | None, Field("Secrets for pulling images.", not_honoured=NO_PODS)] = None
    logVerbosity: Annotated[int | None, Field("How much is logged.", bits=32, not_honoured=_NOT_INSTALLED)] = None


class CDIConfigStatus(Object):
    """The settings in force."""

    uploadProxyURL: Annotated[str | None, Field("Address clients upload to.")] = None
    uploadProxyCA: Annotated[str | None, Field("Certificates to trust there.")] = None
    importProxy: Annotated[ImportProxy | None, Field("The proxy that images are fetched through.")] = None
    scratchSpaceStorageClass: Annotated[str | None, Field("Class for scratch space.")] = None
    defaultPodResourceRequirements: Annotated[PodResourceRequirements | None, Field("What a transfer may use.")] = None
    filesystemOverhead: Annotated[FilesystemOverhead | None, Field("What is set aside for the filesystem.")] = None
    preallocation: Annotated[bool | None, Field("Whether disks are allocated at once.")] = None
    imagePullSecrets: Annotated[list[LocalReference] | None, Field("Secrets for pulling images.")] = None


class CDIConfig(Resource):
    """The settings for disks and their images everywhere. There is one, named `config`."""

    spec: Annotated[CDIConfigSpec, Field("What an administrator decides.", required=True)] = CDIConfigSpec()
    status: Annotated[CDIConfigStatus | None, Field("What holds.")] = None


class CDISpec(Object):
    """An installation of CDI. Paddock keeps it, so that manifests apply; only `config` has an effect."""

    config: Annotated[CDIConfigSpec | None, Field("What the object `config` starts with.")] = None
    cloneStrategyOverride: Annotated[
        str | None, Field("How claims are copied.", enum=("copy", "snapshot", "csi-clone"), not_honoured=_NOT_INSTALLED)
    ] = None
    imagePullPolicy: Annotated[
        str | None, Field("When images are pulled.", enum=("Always", "IfNotPresent", "Never"), not_honoured=_NOT_INSTALLED)
    ] = None
    uninstallStrategy: Annotated[
        str | None,
        Field(
            "What happens on removal.",
            enum=("RemoveWorkloads", "BlockUninstallIfWorkloadsExist"),
            not_honoured=_NOT_INSTALLED,
        ),
    ] = None
    infra: Annotated[Freeform | None, Field("Where controllers run.", not_honoured=_NOT_INSTALLED)] = None
    workload: Annotated[Freeform | None, Field("Where transfers run.", not_honoured=_NOT_INSTALLED)] = None
    certConfig: Annotated[Freeform | None, Field("How long certificates last.", not_honoured=_NOT_INSTALLED)] = None
    priorityClass: Annotated[str | None, Field("PriorityClass of the controllers.", not_honoured=_NOT_INSTALLED)] = None
    customizeComponents: Annotated[Freeform | None, Field("Patches of the installation.", not_honoured=_NOT_INSTALLED)] = None


class CDIStatus(Object):
    """The installation."""

    phase: Annotated[str | None, Field("Deployed, when it is there.")] = None
    conditions: Annotated[list[Condition] | None, Field("Available, Progressing, Degraded.", keys=("type",))] = None
    operatorVersion: Annotated[str | None, Field("Version of the operator.")] = None
    targetVersion: Annotated[str | None, Field("Version that is wanted.")] = None
    observedVersion: Annotated[str | None, Field("Version that is there.")] = None


class CDI(Resource):
    """An installation of CDI."""

    spec: Annotated[CDISpec, Field("The installation.", required=True)] = CDISpec()
    status: Annotated[CDIStatus | None, Field("What is there.")] = None


@rule("kubevirt/cdi-config-name")
def there_is_one_config(config: CDIConfig, settings: AdmissionSettings) -> Iterator[Finding]:
    """Only the object named `config` has an effect (a warning)."""
    if config.metadata.name and config.metadata.name != "config":
        yield finding.warning(("metadata", "name"), 'only the CDIConfig named "config" has an effect', "kubevirt/cdi-config-name")


KINDS = (
    Kind(
        group="cdi.kubevirt.io",
        kind="CDIConfig",
        plural="cdiconfigs",
        singular="cdiconfig",
        namespaced=False,
        cls=CDIConfig,
        dialect="kubevirt",
        versions=(Version("v1beta1"),),
        columns=(AGE,),
        status=False,
        rules=(there_is_one_config,),
    ),
    Kind(
        group="cdi.kubevirt.io",
        kind="CDI",
        plural="cdis",
        singular="cdi",
        # The name of the singular is short enough; upstream lists it all the same.
        short_names=("cdi", "cdis"),
        namespaced=False,
        cls=CDI,
        dialect="kubevirt",
        versions=(Version("v1alpha1", storage=False), Version("v1beta1")),
        columns=(AGE, Column("Phase", ".status.phase")),
    ),
)
