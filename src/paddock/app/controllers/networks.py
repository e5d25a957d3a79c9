"""The controllers of Services and NetworkPolicies, and what resolves NetworkAttachmentDefinitions."""

from paddock.app.controllers.environment import ControllerEnvironment
from paddock.controllers.networkattachments.attachments import NetworkAttachments
from paddock.controllers.networkpolicies import controller
from paddock.controllers.services import controller as services
from paddock.engine.engine import Engine
from paddock.runtime.program import ControllerManager


def wire(program: ControllerManager, engine: Engine, around: ControllerEnvironment) -> NetworkAttachments:
    """Add the controllers to the program. What is returned resolves the networks of machines; `wake` it with their controller."""
    services.add(program, engine.networks, around.domain)
    controller.add(program, engine.networks)
    return NetworkAttachments(program.informers)
