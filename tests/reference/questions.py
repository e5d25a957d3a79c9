"""The objects that both judges see: broken ones and good ones from the declarations, probes of every sort of text and
number, and those that the dialects' own tests judge.
"""

import json
import os
import subprocess
import sys
from collections.abc import Container, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

from hypothesis import Phase, given, settings

from paddock.kubernetes import admission, catalog
from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.field import Object
from paddock.kubernetes.schema.finding import Path as Place
from paddock.kubernetes.schema.finding import format_path
from paddock.kubernetes.schema.kind import CrossFieldRule, Kind, Transition
from tests.kit.declarations import documents, mutations, strategies, texts
from tests.reference.client import Json
from tests.reference.differences import Case
from tests.reference.paddock_side import judge, name_of, resource_of
from tests.reference.verdict import Question, Stored

ROOT = Path(__file__).parents[2]
# the class that declares a place, the way from it, the part of the object, and whether its kind is built in
_Sort = tuple[type[Object], Place, str, bool]

# Numbers and texts at the edges of what judges take for a number, a quantity or a truth.
NUMBERS: tuple[Any, ...] = (
    0, 1, -1, 1.0, 1.5, -0.0, 1e3, 1e21, 2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64,
    "1", "0", "-1", "+1", "1.5", "1.", ".5", ".", "1e3", "1E3", "1e", "1E", "1k", "1K", "1Ki", "1ki", "1m", "1u", "1n", "1M", "100m",
    "1Gi", "1G", "0Gi", "1 Gi", "1Gi ", "1Pi", "1Ei", "10Ei", "1Zi", "1e-3", "1e400", "0x10", "1_000", "1,5", "inf", "NaN", "٣",
    "9223372036854775807", "9223372036854775808", "0.0000000001", "00", "01", "1000m", "1500m", "true",
)  # fmt: skip
TRUTHS: tuple[Any, ...] = (True, False, "true", "false", "yes", 0, 1, None)
# The tests of kinds and their rules, which let Paddock judge objects.
_JUDGING = (
    "tests/unit/kubernetes/core",
    "tests/unit/kubernetes/test_catalog.py",
    "tests/unit/kubernetes/test_releases.py",
    "tests/unit/kubevirt/kinds",
    "tests/unit/dialects/kubermatic/kinds",
    "tests/unit/dialects/stakater/test_rules.py",
    "tests/unit/dialects/virtrigaud/kinds",
    "tests/unit/dialects/vitistack/kinds",
    "tests/unit/dialects/test_declarations.py",
    "tests/unit/dialects/test_properties.py",
    "tests/unit/dialects/test_warns.py",
)


def mutated(kind: Kind, base: Stored | None) -> Iterator[Case]:
    """The documents of a kind with one mistake, put into `base`, a good object of that kind, so that it stays the only one.

    A member that several kinds declare with one class, such as the hardware of a machine, is broken where it comes first.
    """
    for mutation in mutations.mutations(kind, lambda path, _: _bearers()[_sort_of(kind, path)] == (kind, path)):
        # What is no object is refused before anybody knows its kind.
        if isinstance(mutation.thing, dict):
            case = _case(kind, mutation.thing, mutation.path, mutation.what, base)
            if any(complaint.field == case.broken for complaint in case.ours.complaints):
                yield case
            else:
                # A mistake only in the company of what else was in the document that it was made for.
                yield _case(kind, mutation.thing, mutation.path, mutation.what, None)


@cache
def _bearers() -> Mapping[_Sort, tuple[Kind, Place]]:
    """The first place of each member of each class, over all kinds."""
    found: dict[_Sort, tuple[Kind, Place]] = {}
    for kind in kinds():
        for place in documents.places(kind):
            found.setdefault(_sort_of(kind, place.path), (kind, place.path))
    return found


def _sort_of(kind: Kind, path: Place) -> _Sort:
    """Return the class that declares a place, and the way from it.

    Metadata is the same for every kind. A status and what a server has built in are judged in other ways than the rest.
    """
    if path[:1] == ("metadata",):
        return Object, path, "metadata", kind.builtin
    declaring, start, here = kind.cls, 0, cast(shape.Shape, shape.shape_of(kind.cls))
    for index, part in enumerate(path):
        if isinstance(here, shape.ObjectShape):
            declaring, start, here = here.cls, index, here.properties[str(part)].shape
        elif isinstance(here, shape.ListShape | shape.MapShape):
            here = here.item if isinstance(here, shape.ListShape) else here.value
    return declaring, path[start:], "status" if path[:1] == ("status",) else "", kind.builtin


def probed(kind: Kind, base: Stored | None, seen: set[Any]) -> Iterator[Case]:
    """Every sort of scalar in every sort of place; `seen` are the sorts that another kind has already shown."""
    for place in documents.places(kind):
        if place.path[:1] in ((), ("metadata",), ("apiVersion",), ("kind",)) or not isinstance(place.shape, _PROBED):
            continue
        sort = (type(place.shape), _constraints(place.shape))
        if sort not in seen:
            seen.add(sort)
            for value in _probes(place):
                yield _case(kind, place.wrap(value), place.path, f"{json.dumps(value)} as a {_sort_name(place.shape)}", base)


def _sort_name(place: shape.Shape) -> str:
    """A sort of place as a file of differences calls it."""
    field = place.field
    return " ".join(part for part in (field.format, field.pattern, type(place).__name__.removesuffix("Shape").lower()) if part)


def drawn(kind: Kind, count: int) -> Iterator[Case]:
    """Documents that the schema accepts, drawn at random but always the same ones; rules across fields may object to them."""
    things: list[Json] = []

    @settings(max_examples=count, derandomize=True, database=None, deadline=None, phases=[Phase.generate])
    @given(strategies.documents(kind))
    def collect(thing: Json) -> None:
        things.append(thing)

    collect()
    full = documents.fullest(kind)
    # Managed fields are the server's own.
    full["metadata"].pop("managedFields")
    for thing in [full, *things]:
        question = Question(thing, resource_of(kind))
        yield Case(name_of(kind), question, judge(question), own=own_rules(kind))


def recorded(file: Path, served: Container[str]) -> Iterator[Case]:
    """The objects of served kinds that the tests of the dialects let Paddock judge, from a run of them that is made here."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.reference.recorder", "--record-admissions", str(file)]
    ran = subprocess.run(
        [*command, *_JUDGING, "-p", "no:cacheprovider", "-m", "not hypothesis"], cwd=ROOT, env=os.environ, capture_output=True, text=True
    )
    # What the tests found is `make test`'s to say; 0 and 1 mean that they ran.
    if ran.returncode not in (0, 1):
        raise RuntimeError(f"cannot run the tests of the dialects:\n{ran.stdout[-3000:]}{ran.stderr[-3000:]}")
    for line in file.read_text().splitlines():
        noted = json.loads(line)
        kind, _ = admission.identify(noted["new"])
        if kind is not None and name_of(kind) in served:
            version = admission.split_api_version(noted["new"]["apiVersion"])[1]
            if version not in [each.name for each in kind.versions]:
                # There is no place on the server to ask.
                continue
            question = Question(noted["new"], resource_of(kind, version), noted["old"])
            yield Case(name_of(kind), question, judge(question), own=own_rules(kind))


def kinds() -> tuple[Kind, ...]:
    """The kinds that a server can be asked about: those it has built in, and those that get a CRD."""
    return tuple(kind for kind in catalog.every() if kind.stored)


def _case(kind: Kind, thing: Json, path: Place, what: str, base: Stored | None) -> Case:
    keys = tuple(map_keys(shape.shape_of(kind.cls), path))
    question = _question(kind, thing, path, base)
    return Case(name_of(kind), question, judge(question), what, format_path(path), keys, own_rules(kind))


def _question(kind: Kind, thing: Json, path: Place, base: Stored | None) -> Question:
    resource = resource_of(kind)
    if base is None:
        return Question(thing, resource)
    if path[:1] == ("status",) and kind.status and "status" in thing:
        return Question({**base.thing, "status": thing["status"]}, resource, status_of=base)
    return Question(grafted(base.thing, thing, path), resource)


def grafted(base: Json, thing: Json, path: Place) -> Json:
    """A copy of a good object that has at one place what another object has there, or lacks it where that one does.

    Lists come whole from the other object, because the entries of the two have nothing to do with each other.
    """
    metadata = {key: value for key, value in base["metadata"].items() if key == "namespace"}
    made: Json = {**base, "metadata": {"name": "broken", **metadata}}
    made.pop("status", None)
    here, there = made, thing
    for part in map(str, path):
        if part not in there:
            here.pop(part, None)
            break
        inner, other = here.get(part), there[part]
        if part == str(path[-1]) or not isinstance(inner, dict) or not isinstance(other, dict):
            here[part] = other
            break
        # Only what is on the way is copied; the rest is shared, and nobody changes it.
        here[part] = dict(inner)
        here, there = here[part], other
    return made


def shared_rules(kind: Kind) -> frozenset[str]:
    """The rules of a kind that a kube-apiserver has a form of, or of a part of them."""
    return frozenset(rule.id for rule in _rules(kind) if rule.cel)


@cache
def own_rules(kind: Kind) -> frozenset[str]:
    """The rules, of any kind, that the server has no form of for this one: a preset asks rules of instances without their forms."""
    return frozenset(rule.id for each in catalog.every() for rule in _rules(each)) - shared_rules(kind)


def _rules(kind: Kind) -> tuple[CrossFieldRule | Transition, ...]:
    return (*kind.rules, *kind.transitions)


def map_keys(place: shape.Shape, path: Place) -> Iterator[str]:
    """The parts of a path that are keys of maps."""
    for part in path:
        if isinstance(place, shape.MapShape):
            yield str(part)
            place = place.value
        elif isinstance(place, shape.ListShape):
            place = place.item
        elif isinstance(place, shape.ObjectShape) and part in place.properties:
            place = place.properties[str(part)].shape
        else:
            return


_PROBED = (shape.StringShape, shape.IntegerShape, shape.NumberShape, shape.BooleanShape, shape.QuantityShape, shape.IntOrStringShape)


def _constraints(place: shape.Shape) -> tuple[Any, ...]:
    """Return the constraints of a field on its values."""
    field = place.field
    return (
        *(field.ge, field.le, field.bits, field.at_least, field.positive, field.whole),
        *(field.min_length, field.max_length, field.pattern, field.format, field.enum),
        *(field.nullable, field.required, field.empty_is_unset),
    )


def _probes(place: documents.Place) -> Iterator[Any]:
    field = place.shape.field
    if isinstance(place.shape, shape.BooleanShape):
        yield from TRUTHS
    elif isinstance(place.shape, shape.StringShape):
        yield from {text: None for each in texts.BAD.values() for text in each}
        yield from texts.GOOD.values()
        yield from (*TRUTHS, *field.enum, *(word.upper() for word in field.enum), "", " ", "x" * 300, "\u0000", "\ud7ff", "😀")
    else:
        yield from (*NUMBERS, *TRUTHS, *field.enum)
