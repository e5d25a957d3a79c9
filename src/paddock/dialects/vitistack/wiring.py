"""Vitistack's machines, and the networks that they name."""

import msgspec

from paddock.dialects.fronts import FrontSettings
from paddock.dialects.vitistack.controllers import controller
from paddock.dialects.vitistack.controllers.settings import VitistackSettings
from paddock.kubernetes.runtime.program import ControllerManager


def wire(program: ControllerManager, fronts: FrontSettings, front: ControllerManager) -> None:
    settings = VitistackSettings(workers=fronts.workers, mac_set=fronts.mac_set, power_field=fronts.power_field)
    if fronts.resync_seconds is not None:
        settings = msgspec.structs.replace(settings, resync_seconds=fronts.resync_seconds)
    controller.wire(program, settings)
