"""What an error means for a machine: its type, and whether somebody has to change something (docs/spec/vitistack.md section 4.6)."""

from paddock.base.errors import PaddockError
from paddock.client.errors import BadRequest, Forbidden, Invalid, NotFound
from paddock.plan.vitistack import problems
from paddock.plan.vitistack.observed import Aspect, MachineProblem
from paddock.runtime.desired import ForeignObject
from paddock.translate.vitistack.errors import NetworkConfigurationNotFound, StorageClassNotFound, UntranslatableMachine

_INSTALLED: dict[Aspect, str] = {"network": "install Multus", "storage": "install CDI", "machine": "install KubeVirt"}


def of_unmet(error: UntranslatableMachine) -> MachineProblem:
    """What keeps a machine from being translated."""
    aspect: Aspect = "spec"
    if isinstance(error, NetworkConfigurationNotFound):
        aspect = "network"
    elif isinstance(error, StorageClassNotFound):
        aspect = "storage"
    network = error.name if aspect == "network" else ""
    return MachineProblem(error.error_type, str(error), aspect, fails=error.phase == "Failed", network=network)


def of_backend(error: PaddockError, aspect: Aspect) -> MachineProblem:
    """What the backend answered while something of that aspect was made."""
    text = str(error)
    if isinstance(error, Forbidden):
        if "exceeded quota" in text:
            return MachineProblem(problems.RESOURCES, f"{text}; raise the quota or make the machine smaller", aspect)
        if "cannot" in text and "in API group" in text:
            return MachineProblem(problems.BACKEND, f"{text}; check the permissions of the controller", aspect)
    if isinstance(error, Forbidden | Invalid | BadRequest):
        return MachineProblem(problems.BACKEND, f"{text}; correct the machine", aspect, fails=True)
    if isinstance(error, NotFound):
        return MachineProblem(problems.BACKEND, f"{text}; {_INSTALLED.get(aspect, 'check the installation')}", aspect)
    if isinstance(error, ForeignObject):
        return MachineProblem(problems.BACKEND, text, aspect)
    return MachineProblem(problems.BACKEND, f"{text}; check the installation and its permissions", aspect)
