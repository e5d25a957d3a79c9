"""The dialects, and the module of each kind. Each module is loaded on first use, because a command that reads one manifest must not
pay for all dialects; a test holds the values of the dialects against the declarations.

What a server has to know of every kind is generated from the declarations (`facts/kinds.json`), so that it loads the declaration of a
kind only when somebody uses it.
"""

from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

import msgspec

from paddock.kubernetes.schema.dialect import Dialect, KindId
from paddock.kubernetes.schema.kind import Kind, KindFacts

# The one list of dialects: packages with a value DIALECT. Kinds are listed, and names are looked for, in this order: what people wrote goes
# before what was made of it.
_PACKAGES = {
    "core": "paddock.kubernetes.core",
    "stakater": "paddock.dialects.stakater",
    "virtrigaud": "paddock.dialects.virtrigaud",
    "vitistack": "paddock.dialects.vitistack",
    "kubevirt": "paddock.kubevirt",
    "kubermatic": "paddock.dialects.kubermatic",
}
HUB = "kubevirt"
# The built-in kinds of Kubernetes are nobody's dialect.
CORE = "core"
# The dialects as people read them: the hub first.
DIALECTS = (HUB, *sorted({*_PACKAGES} - {HUB, CORE}))

_FACTS = Path(__file__).parent / "facts" / "kinds.json"


@cache
def every_dialect() -> tuple[Dialect, ...]:
    """All dialects, and the built-in kinds as one more, in the order of the list."""
    return tuple(import_module(package).DIALECT for package in _PACKAGES.values())


@cache
def fronts() -> tuple[Dialect, ...]:
    """The dialects with kinds of machines of their own, which become KubeVirt's, in the order of the list."""
    return tuple(each for each in every_dialect() if each.is_front)


def dialect(name: str) -> Dialect:
    """The dialect of a name that is in the list."""
    return next(each for each in every_dialect() if each.name == name)


def package(name: str) -> ModuleType:
    """The package of a dialect, or of the built-in kinds."""
    return import_module(_PACKAGES[name])


def folder(name: str) -> Path:
    """The folder of a dialect, with its examples in `examples`."""
    return Path(package(name).__file__ or "").parent


@cache
def _places() -> dict[KindId, tuple[Dialect, str]]:
    return {kind: (each, module) for each in every_dialect() for kind, module in each.kinds.items()}


@cache
def _kinds_of(module: str) -> tuple[Kind, ...]:
    kinds: tuple[Kind, ...] = import_module(module).KINDS
    return kinds


def owner(group: str, kind: str) -> Dialect | None:
    """The dialect that declares a kind, or None."""
    found = _places().get((group, kind))
    return found[0] if found is not None else None


def module_of(group: str, kind: str) -> str:
    """The module that declares a known kind."""
    declaring, module = _places()[group, kind]
    home = _PACKAGES[declaring.name]
    return f"{home}.{module}" if declaring.name == CORE else f"{home}.kinds.{module}"


def find(group: str, kind: str) -> Kind | None:
    """The declaration of a kind, or None."""
    if (group, kind) not in _places():
        return None
    return next(found for found in _kinds_of(module_of(group, kind)) if found.group == group and found.kind == kind)


def known() -> tuple[KindId, ...]:
    """Every (group, kind), without loading any."""
    return tuple(_places())


@cache
def facts() -> tuple[KindFacts, ...]:
    """The facts of all kinds, in the order of the list, without loading any."""
    return msgspec.json.decode(_FACTS.read_bytes(), type=tuple[KindFacts, ...])


def get(group: str, kind: str) -> Kind:
    """The declaration of a kind that there is; raises `LookupError` for others."""
    found = find(group, kind)
    if found is None:
        raise LookupError(f"no dialect has {kind} of {group}")
    return found


def declaration(kind: KindFacts) -> Kind:
    """The whole declaration of a kind."""
    return kind if isinstance(kind, Kind) else get(kind.group, kind.kind)


def every() -> tuple[Kind, ...]:
    """All declarations, loaded, in the order of the list."""
    return tuple(found for group, kind in _places() if (found := find(group, kind)) is not None)
