"""Kinds by what users call them: `VirtualMachine`, `virtualmachines`, `vm`, `vm.kubevirt.io`, and fields by path below them."""

import msgspec

from paddock.base.errors import Terminal
from paddock.base.nearest import nearest
from paddock.kubernetes import catalog
from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.kind import Kind


class KindNotFound(Terminal):
    """The requested kind or field does not exist, or is ambiguous."""


class KindPath(msgspec.Struct, frozen=True):
    """A kind, and the path below it that was asked for."""

    kind: Kind
    path: tuple[str, ...]
    # kinds of other dialects that have the same name
    others: tuple[Kind, ...] = ()


def resolve(text: str, dialect: str | None) -> KindPath:
    """`KIND[.GROUP][.field.path]`; raises `KindNotFound`."""
    word, _, rest = text.partition(".")
    found = [kind for kind in _named(word) if dialect in (None, kind.dialect)]
    grouped = [kind for kind in found if kind.group and f"{rest}.".startswith(f"{kind.group}.")]
    if grouped:
        # kubevirt.io is the beginning of no other group, but a shorter group might be.
        kind = max(grouped, key=lambda each: len(each.group))
        return KindPath(kind, _path(rest.removeprefix(kind.group)))
    kind = _only(word, rest, found, dialect)
    return KindPath(kind, _path(rest), tuple(each for each in found if each is not kind))


def _path(text: str) -> tuple[str, ...]:
    """The steps of a path; indices of lists say nothing here."""
    return tuple(step for part in text.split(".") if (step := part.partition("[")[0]))


def _named(word: str) -> list[Kind]:
    """The kinds of this name. Kind names are known without loading anything, other names only from the declarations."""
    wanted = word.lower()
    exact = [kind for group, name in catalog.known() if name.lower() == wanted and (kind := catalog.find(group, name))]
    if exact:
        return exact
    return [kind for kind in catalog.every() if wanted in (kind.plural, kind.singular, *kind.short_names)]


def _only(word: str, rest: str, kinds: list[Kind], dialect: str | None) -> Kind:
    if not kinds:
        known = sorted(
            {name for _, name in catalog.known()} if dialect is None else {kind.kind for kind in catalog.every() if kind.dialect == dialect}
        )
        meant = nearest(word, known)
        where = f" of {dialect}" if dialect else ""
        fix = f'did you mean "{meant}"?' if meant else f"known kinds: {', '.join(known)}"
        raise KindNotFound(f'no kind{where} is called "{word}"', fix=fix)
    # kubectl, too, takes such a name for KubeVirt's kind.
    if len(of_hub := [kind for kind in kinds if kind.dialect == "kubevirt"]) == 1:
        return of_hub[0]
    if len(kinds) > 1:
        suffix = f".{rest}" if rest else ""
        choices = "".join(f"\n  {kind.plural}.{kind.group}{suffix}  ({kind.dialect}: {kind.text})" for kind in kinds)
        raise KindNotFound(f"{len(kinds)} kinds are called {word}", fix=f"say which one:{choices}")
    return kinds[0]


def descend(asked: KindPath) -> tuple[shape.Shape, shape.Property | None]:
    """The declaration at the path; raises `KindNotFound` with the nearest name."""
    place: shape.Shape = shape.shape_of(asked.kind.cls)
    prop: shape.Property | None = None
    for depth, step in enumerate(asked.path):
        inner = _inner(place)
        if isinstance(inner, shape.MapShape):
            place, prop = inner.value, None
        elif isinstance(inner, shape.ObjectShape):
            name = inner.aliases.get(step, step)
            if name not in inner.properties:
                raise _no_field(asked, depth, inner)
            prop = inner.properties[name]
            place = prop.shape
        else:
            raise KindNotFound(f"{'.'.join(asked.path[:depth])} has no fields that are declared")
    return place, prop


def _inner(field_shape: shape.Shape) -> shape.Shape:
    """Return the shape of the items of a list, at any depth."""
    while isinstance(field_shape, shape.ListShape):
        field_shape = field_shape.item
    return field_shape


def members(field_shape: shape.Shape) -> dict[str, shape.Property]:
    """The fields below a place."""
    inner = _inner(field_shape)
    while isinstance(inner, shape.MapShape):
        inner = _inner(inner.value)
    return inner.properties if isinstance(inner, shape.ObjectShape) else {}


def _no_field(asked: KindPath, depth: int, field_shape: shape.ObjectShape) -> KindNotFound:
    step = asked.path[depth]
    above = ".".join((asked.kind.kind, *asked.path[:depth]))
    stranger = field_shape.cls.STRANGERS.get(step)
    meant = nearest(step, field_shape.properties)
    fix = stranger or (f'did you mean "{meant}"?' if meant else f"it has {', '.join(field_shape.properties)}")
    return KindNotFound(f'{above} has no field "{step}"', fix=fix)
