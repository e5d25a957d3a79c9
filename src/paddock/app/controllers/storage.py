"""The controllers of claims, DataVolumes and their relatives."""

from collections.abc import Coroutine
from typing import Any

from paddock.app.controllers.surroundings import Surroundings
from paddock.controllers.storage.family import StorageSettings, storage_controllers
from paddock.engine.engine import Engine
from paddock.runtime.program import Program


def wire(program: Program, engine: Engine, around: Surroundings) -> list[tuple[str, Coroutine[Any, Any, None]]]:
    """Add the controllers to the program."""
    settings = StorageSettings(upload_url=around.address, upload_authority=around.authority.decode())
    storage_controllers(program, engine.images, engine.volumes, settings)
    return []
