"""Inputs to another dialect: to KubeVirt, the hub, and from there on, with the losses of both steps.

Secrets, claims and other objects that the first step makes go along when the result refers to them; what the result neither
refers to nor makes again is a loss.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from paddock.cli import losses
from paddock.cli.gather import Gathered
from paddock.cli.objects import Subject
from paddock.cli.rendered import Outcome, Rendered, render
from paddock.dialects import admission
from paddock.meta.objects import Resource
from paddock.meta.rendering import Rendering
from paddock.meta.translated import Loss
from paddock.meta.wire import to_data
from paddock.meta.world import DEFAULT_NAMESPACE, World
from paddock.plan.references import KindId, references
from paddock.translate import catalog

Objects = list[dict[str, Any]]
Name = tuple[KindId, str, str]


def convert(gathered: Gathered, target: str, rendering: Rendering, outcome: Outcome) -> Objects:
    """The objects of the input in another dialect."""
    if target == catalog.HUB:
        return [each.data for each in render(gathered, rendering, outcome)]
    already = [subject.data for subject in gathered.subjects if _is_of(subject, target)]
    others = gathered.narrowed([subject for subject in gathered.subjects if not _is_of(subject, target)])
    hub = render(others, rendering, outcome)
    return [*already, *_from_hub(hub, gathered, target, rendering, outcome)]


def _is_of(subject: Subject, target: str) -> bool:
    kind = subject.admission.kind
    # A kind of the hub may still be written in another dialect's way; its translator knows.
    return kind is not None and kind.dialect == target and catalog.taken_by(kind.group, kind.kind) in (None, target)


def _from_hub(hub: list[Rendered], gathered: Gathered, target: str, rendering: Rendering, outcome: Outcome) -> Iterator[dict[str, Any]]:
    machines = [each for each in hub if each.value is not None and catalog.is_read_back(target, each.data["kind"])]
    known = (each.value for each in hub if each.value is not None)
    world = World([*gathered.world.everything(), *known])
    step = msgspec.structs.replace(gathered, world=world)
    results: Objects = []
    made: dict[Name, dict[str, Any]] = {}
    again: set[Name] = set()
    for each in machines:
        front = outcome.translate(catalog.from_kubevirt(target), each.value, step, each.origin, rendering)
        for data in map(to_data, front):
            # Two machines may bring along the same object.
            if made.setdefault(_name(data), data) is data or made[_name(data)] != data:
                results.append(data)
        again.update(_made_again(front, world, target, rendering))
    yield from results
    there = made.keys() | again
    wanted = {name for data in results for name in _referred(data)}
    told = {name for each in machines for name in _referred(each.data)}
    read = {_name(each.data) for each in machines}
    for each in hub:
        name = _name(each.data)
        if name in read or name in there:
            continue
        if name in wanted or catalog.is_native(target, name[0]) or not (each.generated or _belongs_to_hub(each)):
            yield each.data
        # What a machine refers to was compared when the machine was translated.
        elif name not in told and not any(each.data["kind"] == kind for (_, kind), _, _ in again):
            _lose(each, target, outcome)


def _made_again(front: tuple[Resource, ...], world: World, target: str, rendering: Rendering) -> Iterator[Name]:
    """What a result becomes when it is rendered in turn."""
    seen = World([*world.everything(), *front])
    for resource in front:
        group, _ = admission.split_api_version(resource.apiVersion)
        if catalog.taken_by(group, resource.kind) == target:
            for made in catalog.to_kubevirt(target)(resource, seen, rendering).value:
                yield _name(to_data(made))


def _belongs_to_hub(each: Rendered) -> bool:
    """Whether an object of the input is KubeVirt's or CDI's own, so that another dialect has to say it differently."""
    group, _ = admission.split_api_version(each.data.get("apiVersion"))
    return group == "kubevirt.io" or group.endswith(".kubevirt.io")


def _lose(each: Rendered, target: str, outcome: Outcome) -> None:
    name = _name(each.data)
    loss = Loss(
        of=f"{each.data['kind']}/{name[2]}",
        path=(),
        value=each.data["kind"],
        why=f"{target} has nothing that says it",
        instead="it is left out" if each.generated else "keep it beside the converted manifests if it is needed",
    )
    outcome.losses += losses.tell(outcome.console, [loss], each.value, each.origin, {}) if each.value else 0


def _name(data: dict[str, Any]) -> Name:
    group, _ = admission.split_api_version(data.get("apiVersion"))
    metadata = data.get("metadata") or {}
    return (group, str(data.get("kind"))), str(metadata.get("namespace") or DEFAULT_NAMESPACE), str(metadata.get("name"))


def _referred(data: dict[str, Any]) -> Iterator[Name]:
    """The objects that an object names."""
    kind, namespace, _ = _name(data)
    for reference in references(*kind, data):
        for to in reference.to:
            yield to, reference.namespace or namespace, reference.name
