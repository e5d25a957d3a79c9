"""What everything that looks after one side of the front door stands on."""

import msgspec

from paddock.base.clock import Clock
from paddock.client.client import Client
from paddock.controllers.kubermatic.views import Views
from paddock.controllers.kubermatic.writing import ClusterWriter
from paddock.meta.rendering import Rendering
from paddock.runtime.controller import EventRecorder


class ClusterDoor(msgspec.Struct, frozen=True):
    """Both sides: what is seen of them, how the cluster is written to, and where what users wrote is."""

    views: Views
    writer: ClusterWriter
    front: Client
    rendering: Rendering
    clock: Clock
    teller: EventRecorder
