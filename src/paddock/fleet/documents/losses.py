"""Losses of a translation: what does not fit, where it stands, why, and what happens instead."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from paddock.base.lines import one_line
from paddock.fleet.documents.objects import InputObject
from paddock.kubernetes.meta.manifests.document import Position
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.redaction import HIDDEN, shown
from paddock.kubernetes.meta.translated import Loss
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.field import Object


class LocatedLoss(msgspec.Struct, frozen=True, kw_only=True):
    """A loss with the place of its value. `field` is empty for a whole object."""

    source: str
    position: Position
    of: str
    field: str
    value: str
    text: str


def located(losses: Iterable[Loss], value: Resource, subject: InputObject, others: Mapping[str, InputObject]) -> Iterator[LocatedLoss]:
    """Yield the losses of the translation of a value that comes from a subject.

    A loss may be about another object of the input, known by its title. One of a second translation names a field that the input does
    not have: its place is the beginning of the object.
    """
    own = f"{value.kind}/{value.metadata.name}"
    for loss in losses:
        about = subject if loss.of == own else others.get(loss.of, subject)
        source = value if loss.of == own else about.admission.value
        document = about.document
        yield LocatedLoss(
            source=document.source,
            position=document.position(loss.path) if type(source) is type(about.admission.value) else document.start,
            of=loss.of,
            field=loss.field if loss.path else "",
            value=_value(loss, source),
            text=f"{loss.why}; {loss.instead}",
        )


def line(loss: LocatedLoss) -> str:
    """`file:line:column: loss: Kind/name: field.path: value: why; what happens instead`."""
    place = f"{loss.source}:{loss.position.line}:{loss.position.column}"
    return one_line(": ".join([place, "loss", sentence(loss)]))


def sentence(loss: LocatedLoss) -> str:
    """`Kind/name: field.path: value: why; what happens instead`."""
    return one_line(": ".join(filter(None, [loss.of, loss.field, loss.value, loss.text])))


def _value(loss: Loss, source: Object | None) -> str:
    """The value that is lost, without the secrets in it."""
    value = loss.value if source is None else shown(type(source), loss.path, loss.value)
    return HIDDEN if value == HIDDEN else finding.show(value)
