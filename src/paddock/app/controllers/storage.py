"""The controllers of claims, DataVolumes and their relatives."""

from paddock.app.controllers.surroundings import Surroundings
from paddock.controllers.storage.family import Storage, StorageSettings, storage_controllers
from paddock.engine.engine import Engine
from paddock.runtime.program import Program


def wire(program: Program, engine: Engine, around: Surroundings) -> Storage:
    """Add the controllers to the program; what is returned is closed after it."""
    settings = StorageSettings(upload_url=around.address, upload_authority=around.authority.decode())
    return storage_controllers(program, engine.images, engine.volumes, settings)
