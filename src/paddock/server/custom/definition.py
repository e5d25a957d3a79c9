"""The kind CustomResourceDefinition (`apiextensions.k8s.io/v1`), declared."""

from typing import Annotated

from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema.field import Field, Freeform, Object
from paddock.kubernetes.schema.kind import Column, Kind, Version

GROUP = "apiextensions.k8s.io"
PLURAL = "customresourcedefinitions"
COLLECTION = f"{PLURAL}.{GROUP}"
FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


class Names(Object):
    """The names of the resource and its kind."""

    plural: Annotated[str, Field("Name in the path of the API.", zero=True)] = ""
    singular: Annotated[str | None, Field("Name of one; default: the kind in lower case.")] = None
    shortNames: Annotated[list[str] | None, Field("Names that kubectl understands besides.")] = None
    kind: Annotated[str, Field("The kind, as manifests write it.", zero=True)] = ""
    listKind: Annotated[str | None, Field("The kind of a list; default: the kind and List.")] = None
    categories: Annotated[list[str] | None, Field("Groups of resources, such as all.")] = None


class ValidationSchema(Object):
    """The schema of the objects of a version."""

    openAPIV3Schema: Annotated[Freeform | None, Field("A structural schema.")] = None


class ScaleSubresource(Object):
    """The paths of the numbers of the scale subresource."""

    specReplicasPath: Annotated[str, Field("Path of the number that is wanted.", zero=True)] = ""
    statusReplicasPath: Annotated[str, Field("Path of the number that is there.", zero=True)] = ""
    labelSelectorPath: Annotated[str | None, Field("Path of the selector as text.")] = None


class SubresourceSpec(Object):
    """Paths below an object."""

    status: Annotated[Freeform | None, Field("Being there turns the status subresource on.")] = None
    scale: Annotated[ScaleSubresource | None, Field("Turns the scale subresource on.")] = None


class PrinterColumn(Object):
    """A column of `kubectl get`."""

    name: Annotated[str, Field("Heading.", zero=True)] = ""
    type: Annotated[str, Field("integer, number, string, boolean or date.", zero=True)] = ""
    format: Annotated[str | None, Field("Format of the type.")] = None
    description: Annotated[str | None, Field("What the column says.")] = None
    priority: Annotated[int | None, Field("Above 0: only with -o wide.", bits=32)] = None
    jsonPath: Annotated[str, Field("Where the value is.", zero=True)] = ""


class SelectableField(Object):
    """A field that field selectors may name."""

    jsonPath: Annotated[str, Field("Where the value is.", zero=True)] = ""


class DefinedVersion(Object):
    """One version of the kind."""

    name: Annotated[str, Field("Name of the version, such as v1.", zero=True)] = ""
    served: Annotated[bool, Field("Whether the API offers it.", required=True)] = False
    storage: Annotated[bool, Field("Whether objects are stored in it; exactly one is.", required=True)] = False
    deprecated: Annotated[bool | None, Field("Whether its use earns a warning.")] = None
    deprecationWarning: Annotated[str | None, Field("The text of that warning.")] = None
    schema: Annotated[ValidationSchema | None, Field("What objects look like.")] = None
    subresources: Annotated[SubresourceSpec | None, Field("Paths below an object.")] = None
    additionalPrinterColumns: Annotated[list[PrinterColumn] | None, Field("Columns of kubectl get.")] = None
    selectableFields: Annotated[list[SelectableField] | None, Field("Fields that field selectors may name.")] = None


class WebhookConversion(Object):
    """Somebody who converts between versions."""

    clientConfig: Annotated[Freeform | None, Field("How to reach the webhook.")] = None
    conversionReviewVersions: Annotated[list[str] | None, Field("Versions of ConversionReview that it understands.")] = None


class ConversionSpec(Object):
    """The conversion of objects between versions."""

    strategy: Annotated[str, Field("None or Webhook.", zero=True)] = ""
    webhook: Annotated[WebhookConversion | None, Field("Who converts.")] = None


class DefinitionSpec(Object):
    """A kind that the API serves."""

    group: Annotated[str, Field("Group of the kind; cannot be changed.", zero=True)] = ""
    names: Annotated[Names, Field("What it is called.", required=True)] = Names()
    scope: Annotated[str, Field("Namespaced or Cluster; cannot be changed.", zero=True)] = ""
    versions: Annotated[list[DefinedVersion] | None, Field("The versions.")] = None
    conversion: Annotated[ConversionSpec | None, Field("How objects get from one version to another.")] = None
    preserveUnknownFields: Annotated[bool | None, Field("Has to be false.")] = None


class DefinitionCondition(Object):
    """One thing that is, or is not, so. Nothing is asked of those that others write."""

    type: Annotated[str, Field("What it is about.")] = ""
    status: Annotated[str, Field("True, False or Unknown.")] = ""
    lastTransitionTime: Annotated[str | None, Field("When the status last changed.", nullable=True)] = None
    reason: Annotated[str | None, Field("Why, in one word.")] = None
    message: Annotated[str | None, Field("Why, for people.")] = None
    observedGeneration: Annotated[int | None, Field("The generation that it is about.")] = None


class DefinitionStatus(Object):
    """The observed state of a definition."""

    conditions: Annotated[list[DefinitionCondition] | None, Field("Whether it is served, and why not.", keys=("type",))] = None
    acceptedNames: Annotated[Names | None, Field("The names under which it is served.")] = None
    storedVersions: Annotated[list[str] | None, Field("Versions that objects may be stored in.")] = None


class CustomResourceDefinition(Resource):
    """A kind that a user brings; served as soon as it is made."""

    spec: Annotated[DefinitionSpec, Field("The kind.", required=True)] = DefinitionSpec()
    status: Annotated[DefinitionStatus | None, Field("What has become of it.")] = None


KIND = Kind(
    group=GROUP,
    kind="CustomResourceDefinition",
    plural=PLURAL,
    singular="customresourcedefinition",
    short_names=("crd", "crds"),
    categories=("api-extensions",),
    namespaced=False,
    cls=CustomResourceDefinition,
    dialect="core",
    versions=(Version("v1"),),
    columns=(Column("Created At", ".metadata.creationTimestamp", "date"),),
    builtin=True,
)
