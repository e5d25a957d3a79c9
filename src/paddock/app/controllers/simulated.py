"""The engine of simulated guests, and the annotations of instances and claims that it reads."""

from collections.abc import Mapping

from paddock.app.controllers.environment import ControllerEnvironment
from paddock.engine.engine import EngineSettings
from paddock.engine.simulated import behaviour
from paddock.engine.simulated.engine import SimulatedEngine
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubevirt.controllers.storage.targets import CLAIMS
from paddock.kubevirt.controllers.virtualmachineinstance.targets import INSTANCES

# Objects without it are not read.
_IN_JSON = behaviour.PREFIX.encode()
# The index of claims with an annotation for simulated guests, by UID.
_WITH_FAILURES = "claims with simulated failures"


def engine(around: ControllerEnvironment, settings: EngineSettings) -> SimulatedEngine:
    """Return the engine of a server with simulated guests."""
    return SimulatedEngine(around.directory, settings, nodes=around.machines.nodes)


def connect(simulated: SimulatedEngine, program: ControllerManager) -> None:
    """Have guests behave as the annotations of their instances say, and imports as those of their claims."""
    instances, claims = program.informers.of(INSTANCES), program.informers.of(CLAIMS)
    claims.cache.index(_WITH_FAILURES, lambda seen: (seen.meta.uid or "",) if _IN_JSON in seen.raw else ())

    def annotations(uid: str) -> Mapping[str, str]:
        # The controller of instances makes the index.
        found = next(iter(instances.cache.by("uid", uid)), None)
        if found is None or _IN_JSON not in found.raw:
            return {}
        return found.read(INSTANCES).metadata.annotations or {}

    def import_failure(uid: str) -> str:
        found = next(iter(claims.cache.by(_WITH_FAILURES, uid)), None)
        return behaviour.import_failure(found.read(CLAIMS).metadata.annotations or {}) if found is not None else ""

    simulated.annotations = annotations
    simulated.volumes.import_failure = import_failure
