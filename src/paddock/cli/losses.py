"""Losses of a translation on standard error: what does not fit, why, and what happens instead."""

from collections.abc import Iterable

from paddock.cli.console import Console, one_line
from paddock.cli.objects import Subject
from paddock.meta.translated import Loss
from paddock.plan.differences import HIDDEN, without_secrets
from paddock.schema import finding, shape
from paddock.schema.field import Object


def tell(console: Console, losses: Iterable[Loss], subject: Subject, cls: type[Object]) -> int:
    """Print the losses of one object; the answer is their number.

    `file:line:column: loss: Kind/name: field.path: value: why; what happens instead`. `cls` is what was translated. A loss of a
    second translation names a field that the input does not have, so its place is the beginning of the object.
    """
    count = 0
    for loss in losses:
        count += 1
        place = f"{subject.document.source}:{_place(subject, loss, cls)}"
        field = [loss.field] if loss.path else []
        console.say(one_line(": ".join([place, "loss", loss.of, *field, _value(loss, cls), f"{loss.why}; {loss.instead}"])))
    return count


def _place(subject: Subject, loss: Loss, cls: type[Object]) -> str:
    document = subject.document
    position = document.position(loss.path) if type(subject.admission.value) is cls else document.start
    return f"{position.line}:{position.column}"


def _value(loss: Loss, cls: type[Object]) -> str:
    """The value that is lost, without the secrets in it."""
    place: shape.Shape | None = shape.shape_of(cls)
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
