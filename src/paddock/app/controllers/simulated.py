"""The engine of simulated guests, and the annotations of instances that it reads."""

from collections.abc import Mapping

from paddock.app.controllers.environment import ControllerEnvironment
from paddock.controllers.virtualmachineinstance.targets import INSTANCES
from paddock.engine.engine import EngineSettings
from paddock.engine.simulated.behaviour import PREFIX
from paddock.engine.simulated.engine import SimulatedEngine
from paddock.runtime.program import ControllerManager

# Instances without it are not read.
_IN_JSON = PREFIX.encode()


def engine(around: ControllerEnvironment, settings: EngineSettings) -> SimulatedEngine:
    """Return the engine of a server with simulated guests."""
    return SimulatedEngine(around.directory, settings, nodes=around.machines.nodes)


def connect(simulated: SimulatedEngine, program: ControllerManager) -> None:
    """Have guests behave as the annotations of their instances say."""
    instances = program.informers.of(INSTANCES)

    def annotations(uid: str) -> Mapping[str, str]:
        # The controller of instances makes the index.
        found = next(iter(instances.cache.by("uid", uid)), None)
        if found is None or _IN_JSON not in found.raw:
            return {}
        return found.read(INSTANCES).metadata.annotations or {}

    simulated.annotations = annotations
