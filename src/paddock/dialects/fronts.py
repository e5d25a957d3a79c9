"""The front doors: which are looked after, and with what settings. The embedded server and the operator wire them with the same words.

The value of a dialect names the module that makes its settings from the common ones and adds its controllers. It is loaded on first
use: a program with one dialect does without the others.
"""

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module

import msgspec

from paddock.kubernetes import catalog
from paddock.kubernetes.runtime.program import ControllerManager

DIALECTS = tuple(each.name for each in catalog.every_dialect() if each.wiring)
# What may be decided about a binding plug-in that the backend lacks.
BINDING_FALLBACKS = ("masquerade", "fail")


class FrontSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the dialect controllers, fixed when a program starts."""

    # which of the dialects
    wanted: frozenset[str] = frozenset(DIALECTS)
    # objects of a kind that are reconciled at a time
    workers: int = 5
    # every object is reconciled again this often; None: as each dialect documents it
    resync_seconds: float | None = None
    # the machines run on the engine of this process; else it is a cluster's KubeVirt that runs them
    embedded: bool = True
    # Vitistack's: the second octet of addresses that are made up, and the field that says that a machine runs
    mac_set: str = "12"
    power_field: str = "running"
    # Stakater: what a network card gets whose binding plug-in is not registered: masquerade, or fail
    binding_fallback: str = "masquerade"
    # Stakater: make the rights that copying images out of other namespaces needs
    manage_clone_rbac: bool = False
    # VirtRigaud's: hosts that Providers may name although they are the operator's own, and certificates for Providers without a Secret
    provider_hosts: tuple[str, ...] = ()
    managed_certificates: bool = True
    # hosts of buckets and NFS exports that migrations may use; none: every host that is not refused
    migration_hosts: tuple[str, ...] = ()


# The program, the settings, and the program that has the front objects: the same one, unless they are in an API of their own.
Wire = Callable[[ControllerManager, FrontSettings, ControllerManager], None]


def _wire(module: str, program: ControllerManager, fronts: FrontSettings, front: ControllerManager) -> None:
    import_module(module).wire(program, fronts, front)


WIRES: Mapping[str, Wire] = {each.name: partial(_wire, each.wiring) for each in catalog.every_dialect() if each.wiring}


def wire(program: ControllerManager, fronts: FrontSettings, front: ControllerManager | None = None) -> None:
    """Add the controllers of the dialects that are wanted, each dialect's as a group of its own."""
    programs = (program,) if front is None else (program, front)
    for name, each in WIRES.items():
        if name in fronts.wanted:
            for member in programs:
                member.group = name
            each(program, fronts, front or program)
    for member in programs:
        member.group = ""
