"""The controllers of Services and NetworkPolicies, and what resolves NetworkAttachmentDefinitions."""

from paddock.app.controllers.environment import ControllerEnvironment
from paddock.engine.engine import Engine
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubevirt.controllers.networkattachments.attachments import NetworkAttachments
from paddock.kubevirt.controllers.networkpolicies import controller
from paddock.kubevirt.controllers.services import controller as services


def wire(program: ControllerManager, engine: Engine, around: ControllerEnvironment) -> NetworkAttachments:
    """Add the controllers to the program. What is returned resolves the networks of machines; `wake` it with their controller."""
    services.add(program, engine.networks, around.domain)
    controller.add(program, engine.networks)
    return NetworkAttachments(program.informers)
