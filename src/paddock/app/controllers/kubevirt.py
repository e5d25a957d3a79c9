"""Those of KubeVirt's and CDI's controllers that need the engine."""

from collections.abc import Coroutine
from typing import Any

from paddock.app.controllers.environment import ControllerEnvironment
from paddock.engine.engine import Engine
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubevirt.controllers.clones import controller as clones
from paddock.kubevirt.controllers.migration import evacuation, moves, servers
from paddock.kubevirt.controllers.migration.servers import MigrationDoor
from paddock.kubevirt.controllers.networkattachments.attachments import NetworkAttachments
from paddock.kubevirt.controllers.networkpolicies import controller as networkpolicies
from paddock.kubevirt.controllers.services import controller as services
from paddock.kubevirt.controllers.shares import controller as cpushares
from paddock.kubevirt.controllers.snapshots import assembly as snapshots
from paddock.kubevirt.controllers.storage.assembly import StorageServices, StorageSettings, storage_controllers
from paddock.kubevirt.controllers.virtualmachineinstance import controller as instances
from paddock.kubevirt.controllers.virtualmachineinstance.controller import NodeIdentity


def wire_storage(program: ControllerManager, engine: Engine, around: ControllerEnvironment) -> StorageServices:
    """Add the controllers of claims, DataVolumes and their relatives to the program; what is returned is closed after it."""
    settings = StorageSettings(upload_url=around.address, upload_authority=around.authority.decode())
    return storage_controllers(program, engine.images, engine.volumes, settings)


def wire_networks(program: ControllerManager, engine: Engine, around: ControllerEnvironment) -> NetworkAttachments:
    """Add the controllers of Services and NetworkPolicies. What is returned resolves NetworkAttachmentDefinitions for machines."""
    services.add(program, engine.networks, around.domain)
    networkpolicies.add(program, engine.networks)
    return NetworkAttachments(program.informers)


def wire_instances(
    program: ControllerManager,
    engine: Engine,
    around: ControllerEnvironment,
    attachments: NetworkAttachments,
    door: MigrationDoor | None = None,
) -> list[tuple[str, Coroutine[Any, Any, None]]]:
    """Add the controllers of instances and of what moves them; what is to run beside them, by name."""
    simulated = around.machines.guests == "simulated"
    node_identity = NodeIdentity(around.node, around.domain, around.authority, around.nodes, simulated)
    made = instances.wire(program, engine, node_identity, attachments.resolve)
    attachments.wake(made.controller)
    if simulated:
        moves.wire(program, made.scheduler.target)
        evacuation.wire(program)
    else:
        cpushares.add(program, engine.machines.shares)
    if door is not None:
        servers.wire(program, engine.machines, door, made.receivers.admit)
    return [("sweeper", made.sweeper.run()), ("upgrades", made.upgrades.run())]


def wire_snapshots(program: ControllerManager, engine: Engine) -> None:
    """Add the controllers of snapshots, backups, restores and clones."""
    snapshots.assemble(program, engine)
    clones.wire(program)
