"""The controllers of claims, DataVolumes and their relatives."""

from paddock.app.controllers.environment import ControllerEnvironment
from paddock.engine.engine import Engine
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubevirt.controllers.storage.assembly import StorageServices, StorageSettings, storage_controllers


def wire(program: ControllerManager, engine: Engine, around: ControllerEnvironment) -> StorageServices:
    """Add the controllers to the program; what is returned is closed after it."""
    settings = StorageSettings(upload_url=around.address, upload_authority=around.authority.decode())
    return storage_controllers(program, engine.images, engine.volumes, settings)
