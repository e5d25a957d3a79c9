"""Stakater's machines. The engine has its binding plug-ins without a registration."""

import msgspec

from paddock.dialects.fronts import FrontSettings
from paddock.dialects.stakater.controllers import controller
from paddock.dialects.stakater.controllers.settings import StakaterSettings
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubevirt.rules.networks import PLUGINS


def wire(program: ControllerManager, fronts: FrontSettings, front: ControllerManager) -> None:
    settings = StakaterSettings(
        workers=fronts.workers,
        bindings=frozenset(PLUGINS) if fronts.embedded else frozenset(),
        binding_fallback=fronts.binding_fallback,
        manage_clone_rbac=fronts.manage_clone_rbac,
    )
    if fronts.resync_seconds is not None:
        settings = msgspec.structs.replace(settings, resync_seconds=fronts.resync_seconds)
    controller.wire(program, settings)
