"""VirtRigaud in a cluster, where the programs of Providers are Pods. On the embedded server they are its children, and it wires them
itself (`paddock.app.controllers.virtrigaud`)."""

import msgspec

from paddock.dialects.fronts import FrontSettings
from paddock.dialects.virtrigaud.controllers import controller
from paddock.dialects.virtrigaud.controllers.providers.cluster import ClusterPrograms, ClusterSettings
from paddock.dialects.virtrigaud.controllers.providers.connections import ProviderConnections
from paddock.dialects.virtrigaud.controllers.settings import VirtrigaudSettings
from paddock.kubernetes.runtime.program import ControllerManager


def wire(program: ControllerManager, fronts: FrontSettings, front: ControllerManager) -> None:
    if fronts.embedded:
        return
    settings = VirtrigaudSettings(
        workers=2 * fronts.workers, provider_workers=fronts.workers, migration_storage_allowed_hosts=fronts.migration_hosts
    )
    if fronts.resync_seconds is not None:
        settings = msgspec.structs.replace(settings, resync_seconds=fronts.resync_seconds)
    given = ClusterSettings(managed_certificates=fronts.managed_certificates)
    programs = ClusterPrograms(program.client, program.informers, program.machinery.clock, given)
    controller.wire(program, ProviderConnections(programs, fronts.provider_hosts), settings)
