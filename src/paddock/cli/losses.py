"""Losses of a translation on standard error: what does not fit, why, and what happens instead."""

from collections.abc import Iterable, Mapping

from paddock.cli.console import Console, one_line
from paddock.cli.objects import InputObject
from paddock.meta.objects import Resource
from paddock.meta.redaction import HIDDEN, shown
from paddock.meta.translated import Loss
from paddock.schema import finding
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
    value = loss.value if source is None else shown(type(source), loss.path, loss.value)
    return HIDDEN if value == HIDDEN else finding.show(value)
