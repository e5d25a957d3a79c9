"""VirtRigaud's controllers on the embedded server: the programs of Providers are in its process or children of it."""

from paddock.app.controllers.environment import ControllerEnvironment
from paddock.app.programs.programs import EmbeddedPrograms, ProgramSettings
from paddock.dialects.virtrigaud.controllers import controller
from paddock.dialects.virtrigaud.controllers.providers.connections import ProviderConnections
from paddock.dialects.virtrigaud.controllers.settings import VirtrigaudSettings
from paddock.engine.engine import Engine
from paddock.kubernetes.runtime.program import ControllerManager


class EmbeddedProviders:
    """The Providers of an embedded server: their programs, and the connections to these."""

    def __init__(self, program: ControllerManager, engine: Engine, around: ControllerEnvironment) -> None:
        given = around.providers
        settings = ProgramSettings(
            directory=around.directory,
            numbers=engine.users.programs,
            hosts=given.hosts,
            image_hosts=around.machines.image_hosts,
            drivers=given.drivers,
        )
        self._programs = EmbeddedPrograms(program.client, around.address, settings, program.machinery.clock)
        self._connections = ProviderConnections(self._programs, given.hosts)
        chosen = VirtrigaudSettings(migration_storage_allowed_hosts=given.migration_hosts)
        controller.wire(program, self._connections, chosen)

    async def close(self) -> None:
        """End the connections and the programs."""
        await self._connections.close()
        await self._programs.close()


def wire(program: ControllerManager, engine: Engine, around: ControllerEnvironment) -> EmbeddedProviders:
    """Add the controllers to the program of an embedded server."""
    return EmbeddedProviders(program, engine, around)
