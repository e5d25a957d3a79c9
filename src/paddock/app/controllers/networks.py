"""The controllers of Services and NetworkPolicies, and what resolves NetworkAttachmentDefinitions."""

from paddock.app.controllers.surroundings import Surroundings
from paddock.controllers.networkattachments.attachments import Attachments
from paddock.controllers.networkpolicies import policing
from paddock.controllers.services import services
from paddock.engine.engine import Engine
from paddock.runtime.program import Program


def wire(program: Program, engine: Engine, around: Surroundings) -> Attachments:
    """Add the controllers to the program. What is returned resolves the networks of machines; `wake` it with their controller."""
    services.add(program, engine.networks, around.domain)
    policing.add(program, engine.networks)
    return Attachments(program.informers)
