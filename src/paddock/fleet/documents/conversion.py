"""Inputs to another dialect: to KubeVirt, the hub, and from there on, with the losses of both steps.

Secrets, claims and other objects that the first step makes go along when the result refers to them; what the result neither
refers to nor makes again is a loss.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from paddock.dialects import translators as catalog
from paddock.fleet import kinds
from paddock.fleet.documents import owndisks
from paddock.fleet.documents.inputobjects import InputObjects
from paddock.fleet.documents.objects import InputObject
from paddock.fleet.documents.rendering import RenderedObject, RenderSummary, dialect_of, render
from paddock.kubernetes import admission
from paddock.kubernetes.catalog import every_dialect
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.translated import Loss
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.meta.world import DEFAULT_NAMESPACE, ObjectSet
from paddock.kubernetes.releases import is_of_kubevirt
from paddock.kubernetes.schema.dialect import KindId
from paddock.kubernetes.schema.kind import AdmissionSettings, Kind
from paddock.kubevirt.plan.changes import adapters
from paddock.kubevirt.plan.changes.references import DATA_SOURCE, references

Objects = list[dict[str, Any]]
Name = tuple[KindId, str, str]
_DEFINITION: KindId = ("k8s.cni.cncf.io", "NetworkAttachmentDefinition")


# The dialect whose machines have forms, in which an object is written as the user asks.
WITH_FORMS, FORMS = next(((each.name, each.forms) for each in every_dialect() if each.forms), ("", ()))


def convert(gathered: InputObjects, target: str, rendering: Rendering, outcome: RenderSummary, *, form: str = "") -> Objects:
    """The objects of the input in another dialect; with a form, the machines that have several in that one."""
    made = _converted(gathered, target, rendering, outcome, form)
    return [_in_own_form(data, gathered, outcome) for data in made] if form == "own" else made


def _in_own_form(data: dict[str, Any], gathered: InputObjects, outcome: RenderSummary) -> dict[str, Any]:
    admitted = admission.admit(data, AdmissionSettings())
    dialect, machine = _with_forms(admitted.kind), admitted.value
    if not dialect or not isinstance(machine, Resource) or catalog.is_own(dialect, machine):
        return data
    origin = next((each for each in gathered.subjects if _name(each.data) == _name(data)), gathered.subjects[0])
    translated = catalog.to_own(dialect)(machine, gathered.object_set)
    outcome.lose(translated.losses, machine, origin, {})
    return to_data(translated.value)


def _converted(gathered: InputObjects, target: str, rendering: Rendering, outcome: RenderSummary, form: str) -> Objects:
    if target == catalog.HUB:
        return [each.data for each in render(gathered, rendering, outcome)]
    kept = [subject for subject in gathered.subjects if _is_of(subject, target) and not (form == FORMS[0] and _is_own(subject))]
    already = [subject.data for subject in kept]
    others = gathered.narrowed([subject for subject in gathered.subjects if subject not in kept])
    hub = owndisks.folded(render(others, rendering, outcome), target)
    there = {_name(data) for data in already}
    return [*already, *(data for data in _from_hub(hub, gathered, target, rendering, outcome) if _name(data) not in there)]


def _is_of(subject: InputObject, target: str) -> bool:
    kind = subject.admission.kind
    if kind is None:
        return False
    taken_by = catalog.taken_by(kind.group, kind.kind)
    # Kubermatic's DataSources and DataVolumes are KubeVirt's kinds, and no machine is read back from them.
    if taken_by == target and not catalog.is_read_back(target, kind.kind):
        return True
    # A kind of the hub may still be written in another dialect's way; its translator knows.
    return kind.dialect == target and taken_by in (None, target)


def _is_own(subject: InputObject) -> bool:
    dialect = _with_forms(subject.admission.kind)
    return bool(dialect) and catalog.is_own(dialect, subject.admission.value)


def _with_forms(kind: Kind | None) -> str:
    """Return the dialect of machines of a kind if these have forms."""
    found = kinds.of(kind.group, kind.kind) if kind is not None else None
    return found.dialect if found is not None and found.front and catalog.has_forms(found.dialect) else ""


def _from_hub(
    hub: list[RenderedObject], gathered: InputObjects, target: str, rendering: Rendering, outcome: RenderSummary
) -> Iterator[dict[str, Any]]:
    machines = [each for each in hub if each.value is not None and catalog.is_read_back(target, each.data["kind"])]
    known = (each.value for each in hub if each.value is not None)
    object_set = ObjectSet([*gathered.object_set.everything(), *known])
    step = msgspec.structs.replace(gathered, object_set=object_set)
    results: Objects = []
    made: dict[Name, dict[str, Any]] = {}
    again: dict[Name, dict[str, Any]] = {}
    for each in machines:
        front = outcome.translate(catalog.from_kubevirt(target), each.value, step, each.origin, rendering)
        for data in map(to_data, front):
            # Two machines may bring along the same object.
            if made.setdefault(_name(data), data) is data or made[_name(data)] != data:
                results.append(data)
        again.update(_made_again(front, object_set, target, rendering))
    yield from results
    there = made.keys() | again.keys()
    wanted = {name for data in results for name in (*_referred(data), *_imported(data))}
    referred = {name for each in machines for name in _referred(each.data)}
    read = {_name(each.data) for each in machines}
    for each in hub:
        name = _name(each.data)
        if name in read or (name in there and not _is_wired_differently(each.data, again.get(name))):
            continue
        if name in again:
            yield each.data
            continue
        if name in wanted or catalog.is_native(target, name[0]) or not (each.generated or _belongs_to_hub(each)):
            yield each.data
        # What a machine refers to was compared when the machine was translated.
        elif name not in referred and not any(each.data["kind"] == kind for (_, kind), _, _ in again):
            _lose(each.data, each.value, each.origin, target, outcome, generated=each.generated)
            for source in _sources_of(each.origin, gathered):
                _lose(source.data, source.admission.value, source, target, outcome, generated=True)


def _made_again(
    front: tuple[Resource, ...], object_set: ObjectSet, target: str, rendering: Rendering
) -> Iterator[tuple[Name, dict[str, Any]]]:
    """Yield what a result becomes when it is rendered in turn."""
    seen = ObjectSet([*object_set.everything(), *front])
    for resource in front:
        group, _ = admission.split_api_version(resource.apiVersion)
        if catalog.taken_by(group, resource.kind) == target:
            for made in catalog.to_kubevirt(target)(resource, seen, rendering).value:
                data = to_data(made)
                yield _name(data), data


def _is_wired_differently(definition: dict[str, Any], again: dict[str, Any] | None) -> bool:
    """Return whether a network's definition says what the one that would be made in its place does not."""
    if again is None or definition.get("kind") != _DEFINITION[1]:
        return False
    return _wiring(definition) != _wiring(again)


def _wiring(definition: dict[str, Any]) -> list[dict[str, Any]]:
    """The plugins of a definition, without members that say nothing."""
    config = msgspec.json.decode((definition.get("spec") or {}).get("config") or "{}")
    plugins: list[dict[str, Any]] = config.get("plugins") or [config]
    return [{name: value for name, value in plugin.items() if value} for plugin in plugins]


def _belongs_to_hub(each: RenderedObject) -> bool:
    """Return True for KubeVirt's and CDI's own objects, which another dialect has to express differently."""
    group, _ = admission.split_api_version(each.data.get("apiVersion"))
    return is_of_kubevirt(group)


def _sources_of(lost: InputObject, gathered: InputObjects) -> Iterator[InputObject]:
    """Yield the DataSources of the input that an object which is left out refers to, and that no cluster knows as they are."""
    wanted = {name for name in _referred(lost.data) if name[0] == DATA_SOURCE}
    for subject in gathered.subjects:
        if _name(subject.data) in wanted and dialect_of(subject) is not None:
            yield subject


def _lose(data: dict[str, Any], value: Any, origin: InputObject, target: str, outcome: RenderSummary, *, generated: bool) -> None:
    """Report a whole object as lost."""
    loss = Loss(
        of=f"{data['kind']}/{_name(data)[2]}",
        path=(),
        value=data["kind"],
        why=f"{target} has nothing that says it",
        instead="it is left out" if generated else "keep it beside the converted manifests if it is needed",
    )
    if isinstance(value, Resource):
        outcome.lose([loss], value, origin, {})


def _name(data: dict[str, Any]) -> Name:
    group, _ = admission.split_api_version(data.get("apiVersion"))
    metadata = data.get("metadata") or {}
    return (group, str(data.get("kind"))), str(metadata.get("namespace") or DEFAULT_NAMESPACE), str(metadata.get("name"))


def _imported(data: dict[str, Any]) -> Iterator[Name]:
    """The claim or network that an object names for its Provider; at other providers the same fields name something else."""
    kind, namespace, _ = _name(data)
    for each in adapters.every():
        for to, name in each.imported(kind, data):
            yield to, namespace, name


def _referred(data: dict[str, Any]) -> Iterator[Name]:
    """The objects that an object names."""
    kind, namespace, _ = _name(data)
    for reference in references(*kind, data):
        for to in reference.to:
            yield to, reference.namespace or namespace, reference.name
