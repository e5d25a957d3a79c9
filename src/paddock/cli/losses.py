"""Losses of a translation on standard error: what does not fit, why, and what happens instead."""

from collections.abc import Iterable

from paddock.cli.console import Console, one_line
from paddock.meta.manifests.document import Document
from paddock.meta.translated import Loss
from paddock.schema import finding


def tell(console: Console, losses: Iterable[Loss], document: Document) -> int:
    """Print the losses of one object; the answer is their number.

    `file:line:column: loss: Kind/name: field.path: value: why; what happens instead`. The place is that of the nearest field of
    the input: a loss of a second translation names a field that the input does not have.
    """
    count = 0
    for loss in losses:
        count += 1
        place = f"{document.source}:{_place(document, loss)}"
        field = [loss.field] if loss.path else []
        console.say(one_line(": ".join([place, "loss", loss.of, *field, finding.show(loss.value), f"{loss.why}; {loss.instead}"])))
    return count


def _place(document: Document, loss: Loss) -> str:
    position = document.position(loss.path)
    return f"{position.line}:{position.column}"
