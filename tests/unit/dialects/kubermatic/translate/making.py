"""Worlds and translations for the cases."""

from typing import Any

from paddock.dialects.kubermatic.translate import to_kubevirt
from paddock.kubernetes.admission import admit
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.translated import Translated
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema.kind import AdmissionSettings

RENDERING = Rendering(product="vm-control-plane")
Json = dict[str, Any]
URL = "http://example.com/path/to/your/image.qcow2"
REFERENCE = "spec.dataVolumeTemplates[0].spec.sourceRef"
MANAGED_BY = "app.kubernetes.io/managed-by"
TAKEN_FROM = "virtualization.k8c.io/data-source"


def typed(raw: Json) -> Any:
    """The typed object of a good document."""
    admission = admit(raw, AdmissionSettings(image_source_ref=True))
    assert admission.accepted, admission.findings
    return admission.value


def world(*raws: Json) -> ObjectSet:
    """The world of these documents."""
    return ObjectSet(typed(raw) for raw in raws)


def translated(raw: Json, *others: Json, rendering: Rendering = RENDERING) -> Translated[tuple[Resource, ...]]:
    """Return the translation of a document in a world with others."""
    return to_kubevirt(typed(raw), world(raw, *others), rendering)


def made(raw: Json, *others: Json, rendering: Rendering = RENDERING) -> list[Json]:
    """The objects that a document becomes, without a loss."""
    result = translated(raw, *others, rendering=rendering)
    assert result.losses == ()
    return [to_data(each) for each in result.value]


def machine(raw: Json, *others: Json) -> Json:
    """The machine or pool that a document becomes."""
    return made(raw, *others)[-1]


def template(raw: Json, *others: Json) -> Json:
    """The first DataVolume of the machine that a document becomes."""
    found: Json = machine(raw, *others)["spec"]["dataVolumeTemplates"][0]
    return found


def secret(name: str, **values: str) -> Json:
    """A Secret."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": values}


def config_map(name: str, held: Json, namespace: str = "default") -> Json:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, **held}
