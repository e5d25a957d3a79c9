"""The whole table, what it leaves out, and the page that shows it."""

from collections.abc import Iterable, Iterator

from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.field import Object
from paddock.kubevirt.kinds import virtualmachine
from paddock.kubevirt.kinds.instance import VirtualMachineInstanceSpec
from paddock.kubevirt.kinds.virtualmachine import VirtualMachineSpec
from paddock.kubevirt.translate.limits import Code
from tools.kubevirtsupport import devices, domain, rest
from tools.kubevirtsupport.row import SupportRow

ROWS: tuple[SupportRow, ...] = (*domain.ROWS, *devices.ROWS, *rest.ROWS)
ANNOTATIONS = rest.ANNOTATIONS
MACHINE = rest.MACHINE


def fields(kind: type[Object], *, but: frozenset[str] = frozenset()) -> Iterator[str]:
    """Every field below an object that can hold a value: `devices.disks[].name`. Those in `but` are left out with all below."""
    place = shape.shape_of(kind)
    assert isinstance(place, shape.ObjectShape)
    for prop in place.properties.values():
        yield from _fields(prop.shape, prop.name, but)


def _fields(place: shape.Shape, path: str, but: frozenset[str]) -> Iterator[str]:
    if path in but:
        return
    if isinstance(place, shape.ListShape):
        yield from _fields(place.item, f"{path}[]", but)
    elif isinstance(place, shape.ObjectShape) and place.properties:
        for prop in place.properties.values():
            yield from _fields(prop.shape, f"{path}.{prop.name}", but)
    else:
        yield path


def missing(rows: Iterable[SupportRow], wanted: Iterable[str]) -> list[str]:
    """The fields that no row speaks of."""
    given = [row.field for row in rows]
    return [path for path in wanted if not any(_covers(pattern, path) for pattern in given)]


def _covers(pattern: str, path: str) -> bool:
    """Return whether a row covers a field. A list of plain values has its own name there."""
    if pattern.endswith(".**"):
        stem = pattern.removesuffix(".**")
        return path == stem or path.startswith((f"{stem}.", f"{stem}[]"))
    return path.removesuffix("[]") == pattern


def unspoken() -> list[str]:
    """The fields of machines and running machines that the table leaves out."""
    machine = fields(VirtualMachineSpec, but=frozenset({"template.spec"}))
    return [*missing(ROWS, fields(VirtualMachineInstanceSpec)), *missing(MACHINE, machine)]


_INTRODUCTION = """\
Every field of a machine has an effect here, or a limit with a name. Under *Command line* is what a machine with the field's
value was given, or what it lacks; a test tries each of these rows. A row without it names the part of Paddock that acts on the field.

A limit means one of three things. *Unschedulable*: the machine waits until the host can place it. *StartFailed*: its start ends with
the reason, and the manifest has to be changed. *Note*: an event tells it, and the machine starts.
"""

_REFUSED = """\
A machine that breaks one of these rules is not stored at all. The answer names the field; the numbers are those of the specification."""


def page(header: str) -> str:
    """The reference page, in Markdown."""
    parts = ["# What becomes of each field", header, _INTRODUCTION.rstrip()]
    parts += ["## A machine (`spec` of VirtualMachine)", _table(MACHINE)]
    parts += ["## A running machine (`spec` of VirtualMachineInstance)", _table(ROWS)]
    parts += ["## Annotations", _table(ANNOTATIONS)]
    parts += ["## What is refused before", _REFUSED, _rules()]
    parts += ["## Limits", "\n".join(["| Reason | Means | Told |", "|---|---|---|", *(_limit(code) for code in Code)])]
    return "\n\n".join(parts) + "\n"


def _table(rows: Iterable[SupportRow]) -> str:
    lines = ["| Field | By | What becomes of it | Command line |", "|---|---|---|---|"]
    lines += [f"| `{row.field}` | {row.by} | {_escaped(row.text)} | {_shown(row)} |" for row in rows]
    return "\n".join(lines)


def _shown(row: SupportRow) -> str:
    if isinstance(row.shows, Code):
        return f"{row.shows.weight.value}: {row.shows.reason}"
    if row.shows:
        return f"`{_escaped(row.shows)}`"
    return f"without `{_escaped(row.lacks)}`" if row.lacks else ""


def _rules() -> str:
    """The rules of a machine, as admission asks them."""
    (kind,) = virtualmachine.KINDS[:1]
    lines = ["| Rule | What it asks |", "|---|---|"]
    lines += [f"| {each.id.removeprefix('kubevirt/')} | {_escaped(each.text)} |" for each in kind.rules]
    return "\n".join(lines)


def _limit(code: Code) -> str:
    return f"| {code.reason} | {code.weight.value} | {_escaped(code.sentence)} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
