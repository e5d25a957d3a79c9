"""Losses of a translation on standard error: what does not fit, why, and what happens instead."""

from collections.abc import Iterable, Mapping

from paddock.cli.console import Console, one_line
from paddock.cli.objects import InputObject
from paddock.meta.objects import Resource
from paddock.meta.translated import Loss
from paddock.plan.changes.differences import HIDDEN, without_secrets
from paddock.schema import finding, shape
from paddock.schema.field import Object


def tell(console: Console, losses: Iterable[Loss], value: Resource, subject: InputObject, others: Mapping[str, InputObject]) -> int:
    """Print the losses of the translation of a value that comes from a subject; the answer is their number.

    `file:line:column: loss: Kind/name: field.path: value: why; what happens instead`. A loss may be about another object of the
    input, known by its title. One of a second translation names a field that the input does not have: its place is the beginning
    of the object.
    """
    own = f"{value.kind}/{value.metadata.name}"
    count = 0
    for loss in losses:
        count += 1
        about = subject if loss.of == own else others.get(loss.of, subject)
        source = value if loss.of == own else about.admission.value
        document = about.document
        position = document.position(loss.path) if type(source) is type(about.admission.value) else document.start
        place = f"{document.source}:{position.line}:{position.column}"
        field = [loss.field] if loss.path else []
        console.say(one_line(": ".join([place, "loss", loss.of, *field, _value(loss, source), f"{loss.why}; {loss.instead}"])))
    return count


def _value(loss: Loss, source: Object | None) -> str:
    """The value that is lost, without the secrets in it."""
    place: shape.Shape | None = None if source is None else shape.shape_of(type(source))
    for part in loss.path:
        if place is None or place.field.secret:
            break
        place = _step(place, part)
    shown = loss.value if place is None else without_secrets(place, loss.value)
    return "(not shown)" if shown == HIDDEN else finding.show(shown)


def _step(place: shape.Shape, part: str | int) -> shape.Shape | None:
    if isinstance(place, shape.ListShape):
        return place.item
    if isinstance(place, shape.MapShape):
        return place.value
    prop = place.properties.get(str(part)) if isinstance(place, shape.ObjectShape) else None
    return prop.shape if prop is not None else None
