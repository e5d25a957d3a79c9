"""Every place of every kind's declaration, as the parts of a pattern."""

from collections.abc import Iterator

from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.kind import Kind
from paddock.kubevirt.plan.changes.patterns import ENTRY, Parts

_ENVELOPE = ("apiVersion", "kind", "metadata", "status")


def places(kind: Kind) -> Iterator[Parts]:
    """The places that users write, inner ones included; a declaration that contains itself is entered once."""
    for name, prop in shape.shape_of(kind.cls).properties.items():
        if name not in _ENVELOPE:
            yield from _below(prop.shape, (name,), ())


def _below(place: shape.Shape, at: Parts, above: tuple[type, ...]) -> Iterator[Parts]:
    yield at
    if isinstance(place, shape.ListShape):
        yield from _below(place.item, (*at, ENTRY), above)
    elif isinstance(place, shape.MapShape):
        yield from _below(place.value, (*at, "*"), above)
    elif isinstance(place, shape.ObjectShape) and place.cls not in above:
        for name, prop in place.properties.items():
            yield from _below(prop.shape, (*at, name), (*above, place.cls))
