"""`paddock explain`: describes a kind or a field, its allowed values, and the effect of a change."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from paddock.cli import arguments
from paddock.cli.console import Console
from paddock.cli.exits import GOOD
from paddock.cli.kinds import KindPath, descend, members, resolve
from paddock.fleet.documents import report
from paddock.kubernetes import catalog
from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.generate import words
from paddock.kubernetes.schema.kind import Kind
from paddock.kubevirt.plan.changes import table

_TEXT = """Describe a kind or a field: its purpose, its allowed values, its default, and what a change of it does to a machine.
KIND is a kind, its plural or a short name, alone or with its group (vm.kubevirt.io.spec.template)."""
_EXITS = {0: "success", 2: "wrong usage, or no such kind or field"}
_WIDTH = 100


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("explain", _TEXT, "[OPTIONS] KIND[.field.path]", _EXITS)
    what = options.add_argument("what", metavar="KIND[.field.path]", help="Kind or field to describe, such as vm.spec.runStrategy")
    arguments.complete_with(what, arguments.KnownNames.KINDS)
    arguments.add_choice(options, ("--dialect",), ("core", *catalog.DIALECTS), "Dialect of the kind")
    options.add_argument("--recursive", action="store_true", help="List all nested fields with their types")
    arguments.add_format(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    parsed = parser().parse_args(argv)
    asked = resolve(parsed.what, parsed.dialect)
    place, prop = descend(asked)
    if asked.others:
        names = ", ".join(f"{kind.plural}.{kind.group}" for kind in asked.others)
        console.say(f"paddock: this is KubeVirt's {asked.kind.kind}; other kinds of that name: {names}")
    if parsed.output != "text":
        console.out(report.structured(_as_data(asked, place, prop, recursive=parsed.recursive), parsed.output))
        return GOOD
    lines = [*_head(asked, place, prop), *(_tree(place, 1) if parsed.recursive else _fields(place)), *_rules(asked)]
    console.out("\n".join(lines) + "\n")
    return GOOD


def _head(asked: KindPath, field_shape: shape.Shape, prop: shape.Property | None) -> Iterator[str]:
    kind = asked.kind
    yield f"GROUP:    {kind.group or 'core'} ({kind.dialect})"
    yield f"KIND:     {kind.kind}"
    yield f"VERSION:  {', '.join(version.name for version in kind.versions)}"
    if asked.path:
        yield ""
        yield f"FIELD:    {'.'.join(asked.path)} <{words.type_of(field_shape)}>" + (" required" if field_shape.field.required else "")
    yield ""
    yield "DESCRIPTION:"
    yield from _wrapped(words.describe(field_shape), 4)
    for name, text in _facts(field_shape, prop):
        yield from _wrapped(f"{name}: {text}", 4, hang=2)
    if asked.path:
        row = table.row_for(kind, asked.path)
        if row is not None:
            yield from _wrapped(f"A change of it: {row.effect}: {row.why}", 4, hang=2)


def _facts(field_shape: shape.Shape, prop: shape.Property | None) -> Iterator[tuple[str, str]]:
    """Yield the allowed values and the default of a field."""
    allowed = "; ".join(words.allowed(field_shape)).replace("`", "")
    if allowed:
        yield "Allowed", allowed
    default = words.default_of(prop) if prop is not None else ""
    if default:
        yield "Default", default


def _fields(field_shape: shape.Shape) -> Iterator[str]:
    fields = members(field_shape)
    if not fields:
        return
    yield ""
    yield "FIELDS:"
    for name, prop in fields.items():
        required = " required" if prop.field.required else ""
        yield f"  {name} <{words.type_of(prop.shape)}>{required}"
        yield from _wrapped(words.describe(prop.shape), 6)
        for fact, text in _facts(prop.shape, prop):
            yield from _wrapped(f"{fact}: {text}", 6, hang=2)


def _tree(field_shape: shape.Shape, depth: int, above: tuple[type, ...] = ()) -> Iterator[str]:
    if depth == 1:
        yield ""
        yield "FIELDS:"
    for name, prop in members(field_shape).items():
        required = " required" if prop.field.required else ""
        yield f"{'  ' * depth}{name} <{words.type_of(prop.shape)}>{required}"
        inner = _class_of(prop.shape)
        if inner not in above:
            yield from _tree(prop.shape, depth + 1, (*above, inner))


def _class_of(field_shape: shape.Shape) -> type:
    """The class below lists and maps, by which a declaration that contains itself is known."""
    while isinstance(field_shape, shape.ListShape | shape.MapShape):
        field_shape = field_shape.item if isinstance(field_shape, shape.ListShape) else field_shape.value
    return field_shape.cls if isinstance(field_shape, shape.ObjectShape) else type(None)


def _rules(asked: KindPath) -> Iterator[str]:
    """The rules across fields, for the kind as a whole."""
    kind = asked.kind
    if asked.path or not (kind.rules or kind.transitions):
        return
    yield ""
    yield "RULES:"
    texts = [*((rule.text, rule.id) for rule in kind.rules), *((rule.text, rule.id) for rule in kind.transitions)]
    for text, rule_id in texts:
        yield from _wrapped(f"{text} ({rule_id})", 4, hang=2)


def _wrapped(text: str, indent: int, hang: int = 0) -> list[str]:
    pad = " " * indent
    return textwrap.wrap(
        text, _WIDTH, initial_indent=pad, subsequent_indent=pad + " " * hang, break_long_words=False, break_on_hyphens=False
    )


def _as_data(asked: KindPath, field_shape: shape.Shape, prop: shape.Property | None, *, recursive: bool) -> dict[str, Any]:
    data = {"group": asked.kind.group, "kind": asked.kind.kind, "dialect": asked.kind.dialect, **_versions(asked.kind)}
    row = table.row_for(asked.kind, asked.path) if asked.path else None
    change = {"change": {"effect": str(row.effect), "why": row.why}} if row is not None else {}
    return {**data, "path": ".".join(asked.path), **change, **_field_data(field_shape, prop, 2 if not recursive else 100)}


def _versions(kind: Kind) -> dict[str, Any]:
    return {"versions": [version.name for version in kind.versions]}


def _field_data(field_shape: shape.Shape, prop: shape.Property | None, depth: int, above: tuple[type, ...] = ()) -> dict[str, Any]:
    data: dict[str, Any] = {"type": words.type_of(field_shape), "text": words.describe(field_shape), "required": field_shape.field.required}
    if field_shape.field.enum:
        data["enum"] = list(field_shape.field.enum)
    data.update({name.lower(): text for name, text in _facts(field_shape, None)})
    if prop is not None and prop.default is not shape.ABSENT:
        data["default"] = prop.default
    inner = _class_of(field_shape)
    if depth > 1 and inner not in above:
        fields = {name: _field_data(each.shape, each, depth - 1, (*above, inner)) for name, each in members(field_shape).items()}
        if fields:
            data["fields"] = fields
    return data
