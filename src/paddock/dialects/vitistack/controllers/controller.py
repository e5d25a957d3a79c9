"""The controllers of Vitistack's kinds, wired to a program."""

import msgspec

from paddock.dialects.vitistack.controllers import machines, networks, targets
from paddock.dialects.vitistack.controllers.context import ControllerParts
from paddock.dialects.vitistack.controllers.machines import VitistackMachineReconciler
from paddock.dialects.vitistack.controllers.metrics import VitistackMetrics
from paddock.dialects.vitistack.controllers.networks import NetworkConfigurationReconciler, NetworkDefinitions
from paddock.dialects.vitistack.controllers.reader import VitistackCaches
from paddock.dialects.vitistack.controllers.settings import VitistackSettings
from paddock.dialects.vitistack.kinds.marks import MACHINE, NETWORK_CONFIGURATION
from paddock.kubernetes.runtime.controller import Controller, labelled, own_key, owners
from paddock.kubernetes.runtime.controller import ControllerSettings as Pace
from paddock.kubernetes.runtime.program import ControllerManager


def wire(program: ControllerManager, settings: VitistackSettings = VitistackSettings()) -> Controller:  # noqa: B008 - frozen
    """Add the controllers to a program; the one of Machines is returned."""
    caches, machinery = VitistackCaches(program.informers), program.machinery
    parts = ControllerParts(
        program.client,
        caches,
        machinery.clock,
        VitistackMetrics(machinery, caches),
        program.recorder.voice(targets.MANAGER),
        settings,
    )
    attachments = NetworkDefinitions(program.client, caches)
    pace = Pace(workers=settings.workers, sweep_seconds=settings.resync_seconds)
    of_networks = _networks(NetworkConfigurationReconciler(parts, attachments), caches, program, pace)
    looks = VitistackMachineReconciler(parts, attachments, of_networks.offer, machinery.chance)
    of_machines = _machines(looks, caches, program, pace)
    parts.metrics.observe(of_machines, machines.CONTROLLER)
    parts.metrics.observe(of_networks, networks.CONTROLLER)
    program.add(of_machines)
    program.add(of_networks)
    return of_machines


def _machines(looks: VitistackMachineReconciler, caches: VitistackCaches, program: ControllerManager, pace: Pace) -> Controller:
    settings = msgspec.structs.replace(pace, about=looks.fields)
    found = Controller(machines.CONTROLLER, caches.machines, looks.reconcile, machinery=program.machinery, settings=settings)
    found.watch(caches.vms, owners(targets.MACHINES.group, targets.MACHINES.kind), gather=machines.GATHER_SECONDS)
    for informer in (caches.instances, caches.claims, caches.volumes):
        found.watch(informer, labelled(MACHINE), gather=machines.GATHER_SECONDS)
    found.watch(caches.secrets, owners(targets.MACHINES.group, targets.MACHINES.kind))
    found.watch(caches.secrets, caches.users(caches.secrets))
    for informer in (caches.templates, caches.machine_classes, caches.config_maps):
        found.watch(informer, caches.users(informer))
    found.watch(caches.attachments, caches.users(caches.attachments))
    found.watch(caches.networks, looks.by_network)
    found.watch(caches.classes, looks.by_class)
    return found


def _networks(looks: NetworkConfigurationReconciler, caches: VitistackCaches, program: ControllerManager, pace: Pace) -> Controller:
    found = Controller(networks.CONTROLLER, caches.networks, looks.reconcile, machinery=program.machinery, settings=pace)
    found.watch(caches.attachments, labelled(NETWORK_CONFIGURATION))
    found.watch(caches.attachments, own_key)
    found.watch(caches.machines, looks.by_machine)
    found.watch(caches.instances, looks.by_instance)
    return found
