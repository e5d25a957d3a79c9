"""Users' kinds, put together: the resource of the definitions, what they make, and what finishes their deletion."""

from msgspec import structs

from paddock.kubernetes import catalog
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.server.context import ServerParts
from paddock.server.custom import definition
from paddock.server.custom.finalizer import DefinitionFinalizer
from paddock.server.custom.owndefinitions import OwnKinds
from paddock.server.custom.pipeline import DefinitionPipeline
from paddock.server.custom.resources import DefinitionServer
from paddock.server.custom.strategy import DefinitionStrategy
from paddock.server.resources.declared import resources_of


def install(parts: ServerParts) -> DefinitionFinalizer:
    """Serve definitions and everything they define; call it before the server is ready, and run what it returns."""
    own = OwnKinds(catalog.facts(), parts.registry)
    definitions = DefinitionServer(parts, own)
    (plain,) = resources_of(definition.KIND, AdmissionSettings(), DefinitionStrategy(definitions.builtin, own))
    # A definition decides about other objects, so nobody overwrites one that he has not read.
    resource = structs.replace(
        plain, pipeline=DefinitionPipeline(), unconditional_update=False, from_stored=own.shown, to_stored=own.stored
    )
    parts.registry.add(resource)
    return DefinitionFinalizer(parts, definitions, resource, own)
