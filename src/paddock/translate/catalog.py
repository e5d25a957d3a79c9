"""The translator of each kind. Modules are named here and loaded when first needed, because a command that translates one
dialect must not pay for the others.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from paddock.dialects.kubevirt.references import is_of_kubevirt
from paddock.meta.objects import Resource
from paddock.meta.rendering import Rendering
from paddock.meta.translated import Translated
from paddock.meta.world import ObjectSet

Translate = Callable[[Any, ObjectSet, Rendering], Translated[tuple[Resource, ...]]]

HUB = "kubevirt"
DIALECTS = ("kubermatic", "stakater", "virtrigaud", "vitistack")

# (group, kind) -> the dialect whose translator makes KubeVirt objects of it
_TAKEN_BY: dict[tuple[str, str], str] = {
    ("infrastructure.stakater.com", "VirtualMachine"): "stakater",
    # Kubermatic's kinds are KubeVirt's; its translator leaves alone what uses nothing of Kubermatic's.
    ("kubevirt.io", "VirtualMachine"): "kubermatic",
    ("kubevirt.io", "VirtualMachinePool"): "kubermatic",
    ("pool.kubevirt.io", "VirtualMachinePool"): "kubermatic",
    ("cdi.kubevirt.io", "DataVolume"): "kubermatic",
    ("cdi.kubevirt.io", "DataSource"): "kubermatic",
    ("infra.virtrigaud.io", "VirtualMachine"): "virtrigaud",
    # Wishes about machines: they become nothing, and the translator says so.
    **{("infra.virtrigaud.io", kind): "virtrigaud" for kind in ("VMSet", "VMSnapshot", "VMClone", "VMMigration", "VMPlacementPolicy")},
    ("vitistack.io", "Machine"): "vitistack",
}
# Kinds that only say something about machines: they are read while a machine is translated, and become nothing by themselves.
_READ: dict[str, str] = {"infra.virtrigaud.io": "virtrigaud", "virtualization.k8c.io": "kubermatic", "vitistack.io": "vitistack"}

# What each dialect makes of KubeVirt's objects again: machines, and where it has them, pools.
_READ_BACK: dict[str, tuple[str, ...]] = {"kubermatic": ("VirtualMachine", "VirtualMachinePool")}


def is_read_back(dialect: str, kind: str) -> bool:
    """Return whether `from_kubevirt` of a dialect takes this kind of KubeVirt's."""
    return kind in _READ_BACK.get(dialect, ("VirtualMachine",))


def is_native(dialect: str, kind: tuple[str, str]) -> bool:
    """Return whether a dialect has a kind of KubeVirt's or CDI's as it is."""
    group, name = kind
    return dialect == "kubermatic" and is_of_kubevirt(group) and not is_read_back(dialect, name)


def taken_by(group: str, kind: str) -> str | None:
    """The dialect whose translator takes objects of a kind."""
    return _TAKEN_BY.get((group, kind))


def is_read(group: str, kind: str) -> bool:
    """Return whether a kind's objects are read for the machines that refer to them."""
    return group in _READ and (group, kind) not in _TAKEN_BY


def is_all_in_kubevirt(group: str, kind: str) -> bool:
    """Return whether a machine of a kind is nothing but the KubeVirt objects that it becomes; VirtRigaud's providers see more of theirs."""
    return taken_by(group, kind) in ("stakater", "vitistack")


@cache
def _module(dialect: str) -> Any:
    return import_module(f"paddock.translate.{dialect}")


def to_kubevirt(dialect: str) -> Translate:
    """The translator of a dialect's objects."""
    translate: Translate = _module(dialect).to_kubevirt
    return translate


def from_kubevirt(dialect: str) -> Translate:
    """The translator of KubeVirt's machines to a dialect."""
    translate: Translate = _module(dialect).from_kubevirt
    return translate
