"""Kubermatic's forms are the embedded server's own objects; for a cluster there has to be an API that can hold them."""

import msgspec

from paddock.dialects.fronts import FrontSettings
from paddock.dialects.kubermatic.controllers import goldens
from paddock.dialects.kubermatic.controllers.settings import KubermaticSettings
from paddock.kubernetes.runtime.program import ControllerManager


def wire(program: ControllerManager, fronts: FrontSettings, front: ControllerManager) -> None:
    settings = KubermaticSettings(workers=fronts.workers)
    if fronts.resync_seconds is not None:
        settings = msgspec.structs.replace(settings, resync_seconds=fronts.resync_seconds)
    if fronts.embedded:
        goldens.wire(program, settings)
    elif front is not program:
        # An embedded server does without it.
        from paddock.dialects.kubermatic.controllers import controller  # noqa: PLC0415

        controller.wire(front, program, settings)
