"""`v1 Namespace`."""

from collections.abc import Iterator
from typing import Annotated

from paddock.base import names
from paddock.kubernetes.meta.conditions import Condition
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.field import Field, Object
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AGE, AdmissionSettings, Column, Kind, rule


class NamespaceSpec(Object):
    """The finalizers of a namespace."""

    finalizers: Annotated[list[str] | None, Field("Who has to agree before the namespace goes.")] = None


class NamespaceStatus(Object):
    """The observed state of a namespace."""

    phase: Annotated[str | None, Field("Active or Terminating.", enum=("Active", "Terminating"))] = None
    conditions: Annotated[list[Condition] | None, Field("Conditions of the namespace.", keys=("type",))] = None


class Namespace(Resource):
    """A scope for the names of objects."""

    spec: Annotated[NamespaceSpec | None, Field("Who has to agree before it goes.")] = None
    status: Annotated[NamespaceStatus | None, Field("What was observed.")] = None


@rule("core/namespace-name")
def name_is_a_label(namespace: Namespace, settings: AdmissionSettings) -> Iterator[Finding]:
    """The name becomes a part of host names, so it is a DNS-1123 label of at most 63 characters."""
    name = namespace.metadata.name
    if name and names.is_subdomain(name) and not names.is_label(name):
        yield finding.invalid(("metadata", "name"), name, "must be a DNS-1123 label", "core/namespace-name")


KINDS = (
    Kind(
        group="",
        kind="Namespace",
        plural="namespaces",
        singular="namespace",
        short_names=("ns",),
        namespaced=False,
        cls=Namespace,
        dialect="core",
        columns=(Column("Status", ".status.phase"), AGE),
        builtin=True,
        rules=(name_is_a_label,),
    ),
)
