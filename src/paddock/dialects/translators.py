"""The translator of each kind, as the values of the dialects name it. A translator is loaded when first needed, because a command that
translates one dialect must not pay for the others.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from paddock.kubernetes import catalog
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.translated import Translated
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.releases import is_of_kubevirt

Translate = Callable[[Any, ObjectSet, Rendering], Translated[tuple[Resource, ...]]]

HUB = catalog.HUB
DIALECTS = tuple(name for name in catalog.DIALECTS if catalog.dialect(name).translator)


def is_read_back(dialect: str, kind: str) -> bool:
    """Return whether `from_kubevirt` of a dialect takes this kind of KubeVirt's."""
    return kind in catalog.dialect(dialect).read_back


def is_native(dialect: str, kind: tuple[str, str]) -> bool:
    """Return whether a dialect has a kind of KubeVirt's or CDI's as it is."""
    group, name = kind
    return catalog.dialect(dialect).extends_kubevirt and is_of_kubevirt(group) and not is_read_back(dialect, name)


@cache
def _takers() -> dict[tuple[str, str], str]:
    return {kind: dialect.name for dialect in catalog.every_dialect() for kind in dialect.translated}


def taken_by(group: str, kind: str) -> str | None:
    """The dialect whose translator takes objects of a kind."""
    return _takers().get((group, kind))


def is_read(group: str, kind: str) -> bool:
    """Return whether a kind's objects are read for the machines that refer to them."""
    is_theirs = any(dialect.translator and dialect.group == group for dialect in catalog.every_dialect())
    return is_theirs and taken_by(group, kind) is None


def is_all_in_kubevirt(group: str, kind: str) -> bool:
    """Return whether a machine of a kind is nothing but the KubeVirt objects that it becomes; VirtRigaud's providers see more of theirs."""
    taker = taken_by(group, kind)
    return taker is not None and catalog.dialect(taker).is_all_in_kubevirt


def has_forms(dialect: str) -> bool:
    """Return whether machines of a dialect have a form of its own besides the document's."""
    return bool(catalog.dialect(dialect).forms)


def is_own(dialect: str, value: object) -> bool:
    """Return whether a machine is in the form of its dialect's own."""
    return bool(_module(dialect).is_own(value))


def to_own(dialect: str) -> Callable[[Any, ObjectSet], Translated[Resource]]:
    """The writer of a dialect's machines in the form of its own."""
    write: Callable[[Any, ObjectSet], Translated[Resource]] = _module(dialect).to_own
    return write


@cache
def _module(dialect: str) -> Any:
    return import_module(catalog.dialect(dialect).translator)


def to_kubevirt(dialect: str) -> Translate:
    """The translator of a dialect's objects."""
    translate: Translate = _module(dialect).to_kubevirt
    return translate


def from_kubevirt(dialect: str) -> Translate:
    """The translator of KubeVirt's machines to a dialect."""
    translate: Translate = _module(dialect).from_kubevirt
    return translate
