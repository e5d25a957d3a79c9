"""`k8s.cni.cncf.io/v1 NetworkAttachmentDefinition`."""

from collections.abc import Iterator
from typing import Annotated

import msgspec

from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.field import Field, Object
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AGE, AdmissionSettings, Kind, rule


class NetworkAttachmentDefinitionSpec(Object):
    """The network."""

    config: Annotated[
        str | None,
        Field("Configuration of the network as a CNI JSON document; absent when it lies on the nodes.", max_length=65536),
    ] = None


class NetworkAttachmentDefinition(Resource):
    """A network beside the pod network, that machines can be attached to."""

    spec: Annotated[NetworkAttachmentDefinitionSpec | None, Field("The network.")] = None


@rule("core/network-config")
def config_is_json(definition: NetworkAttachmentDefinition, settings: AdmissionSettings) -> Iterator[Finding]:
    """A configuration that is no JSON object never attaches anything (a warning: the API takes it)."""
    config = definition.spec.config if definition.spec else None
    if not config:
        return
    path = ("spec", "config")
    try:
        parsed = msgspec.json.decode(config)
    except msgspec.DecodeError as error:
        yield finding.warning(path, f"not JSON, machines on this network will not start: {error}", "core/network-config")
        return
    if not isinstance(parsed, dict):
        yield finding.warning(path, "must be a JSON object, machines on this network will not start", "core/network-config")


KINDS = (
    Kind(
        group="k8s.cni.cncf.io",
        kind="NetworkAttachmentDefinition",
        plural="network-attachment-definitions",
        singular="network-attachment-definition",
        short_names=("net-attach-def",),
        cls=NetworkAttachmentDefinition,
        dialect="core",
        columns=(AGE,),
        status=False,
        rules=(config_is_json,),
    ),
)
