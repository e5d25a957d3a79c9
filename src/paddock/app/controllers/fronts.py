"""The front doors: which are looked after, and with what settings. The embedded server and the operator wire them with the same words.

A dialect has one function here, which makes its settings from the common ones and loads its controllers: a program with one
dialect does without the others.
"""

from collections.abc import Callable, Mapping

import msgspec

from paddock.runtime.program import ControllerManager

DIALECTS = ("stakater", "vitistack", "kubermatic", "virtrigaud")
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


def _kubermatic(program: ControllerManager, fronts: FrontSettings, front: ControllerManager) -> None:
    """Kubermatic's forms are the embedded server's own objects; for a cluster there has to be an API that can hold them."""
    # Whoever does without this dialect does not load it.
    from paddock.controllers.kubermatic import controller, goldens  # noqa: PLC0415
    from paddock.controllers.kubermatic.settings import KubermaticSettings  # noqa: PLC0415

    settings = KubermaticSettings(workers=fronts.workers)
    if fronts.resync_seconds is not None:
        settings = msgspec.structs.replace(settings, resync_seconds=fronts.resync_seconds)
    if fronts.embedded:
        goldens.wire(program, settings)
    elif front is not program:
        controller.wire(front, program, settings)


def _vitistack(program: ControllerManager, fronts: FrontSettings, front: ControllerManager) -> None:
    """Machines, and the networks that they name."""
    from paddock.controllers.vitistack import controller  # noqa: PLC0415
    from paddock.controllers.vitistack.settings import VitistackSettings  # noqa: PLC0415

    settings = VitistackSettings(workers=fronts.workers, mac_set=fronts.mac_set, power_field=fronts.power_field)
    if fronts.resync_seconds is not None:
        settings = msgspec.structs.replace(settings, resync_seconds=fronts.resync_seconds)
    controller.wire(program, settings)


def _stakater(program: ControllerManager, fronts: FrontSettings, front: ControllerManager) -> None:
    """The engine has its binding plug-ins without a registration."""
    # Whoever does without this dialect does not load it.
    from paddock.controllers.stakater import controller  # noqa: PLC0415
    from paddock.controllers.stakater.settings import StakaterSettings  # noqa: PLC0415
    from paddock.dialects.kubevirt.rules.networks import PLUGINS  # noqa: PLC0415

    settings = StakaterSettings(
        workers=fronts.workers,
        bindings=frozenset(PLUGINS) if fronts.embedded else frozenset(),
        binding_fallback=fronts.binding_fallback,
        manage_clone_rbac=fronts.manage_clone_rbac,
    )
    if fronts.resync_seconds is not None:
        settings = msgspec.structs.replace(settings, resync_seconds=fronts.resync_seconds)
    controller.wire(program, settings)


def _virtrigaud(program: ControllerManager, fronts: FrontSettings, front: ControllerManager) -> None:
    """In a cluster, the programs of Providers are Pods. On the embedded server they are its children, and it wires them itself."""
    if fronts.embedded:
        return
    # Whoever does without this dialect does not load it.
    from paddock.controllers.virtrigaud import controller  # noqa: PLC0415
    from paddock.controllers.virtrigaud.providers.cluster import ClusterPrograms, ClusterSettings  # noqa: PLC0415
    from paddock.controllers.virtrigaud.providers.connections import ProviderConnections  # noqa: PLC0415
    from paddock.controllers.virtrigaud.settings import VirtrigaudSettings  # noqa: PLC0415

    settings = VirtrigaudSettings(
        workers=2 * fronts.workers, provider_workers=fronts.workers, migration_storage_allowed_hosts=fronts.migration_hosts
    )
    if fronts.resync_seconds is not None:
        settings = msgspec.structs.replace(settings, resync_seconds=fronts.resync_seconds)
    given = ClusterSettings(managed_certificates=fronts.managed_certificates)
    programs = ClusterPrograms(program.client, program.informers, program.machinery.clock, given)
    controller.wire(program, ProviderConnections(programs, fronts.provider_hosts), settings)


WIRES: Mapping[str, Wire] = {"stakater": _stakater, "vitistack": _vitistack, "kubermatic": _kubermatic, "virtrigaud": _virtrigaud}


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
