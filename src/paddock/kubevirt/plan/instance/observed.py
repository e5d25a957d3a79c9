"""Everything that was seen of a machine in one look, as one value: what the engine says, what the guest says, what is waited for."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from paddock.engine.machine.observation import Observation
from paddock.kubernetes.meta.conditions import Condition
from paddock.kubevirt.kinds.status import CPUTopology, GuestOSInfo, InterfaceStatus, KernelBootStatus, VolumeStatus
from paddock.kubevirt.plan.instance.prerequisites import StartBlocker
from paddock.kubevirt.plan.instance.volumemoves import VolumeMove


class GuestReport(msgspec.Struct, frozen=True):
    """The agent's report. None: it was not asked yet, or cannot tell."""

    os: GuestOSInfo | None = None
    interfaces: tuple[InterfaceStatus, ...] = ()
    frozen: bool = False
    # those that the agent carries out; empty: it did not say
    commands: frozenset[str] = frozenset()


class ObservedInstance(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was seen of a machine."""

    now: str
    node: str
    # how many nodes there are, and the reason and message of what keeps the machine on its node
    nodes: int = 1
    obstacle: tuple[str, str] | None = None
    # no guest runs in it
    simulated: bool = False
    # its guest comes from another server
    receives: bool = False
    observed: Observation | None = None
    hold: StartBlocker | None = None
    prepared: bool = False
    # None: there is no readiness probe
    answers: bool | None = None
    # what is wrong with a guest whose agent is there and does not answer; "": it answers
    silent: str = ""
    cards: Sequence[InterfaceStatus] = ()
    limits: Sequence[str] = ()
    volumes: Sequence[VolumeStatus] = ()
    # None: nobody has asked since Paddock was started, and the former answer holds
    guest: GuestReport | None = None
    # None: no credentials are kept in the guest; "" they are; else why not
    credentials: str | None = None
    cloud_init: Condition | None = None
    machine_type: str = ""
    # memory in bytes: at boot, now, asked for, taken besides
    memory: tuple[int, int, int, int] | None = None
    topology: CPUTopology | None = None
    kernel: KernelBootStatus | None = None
    user: int | None = None
    # why it cannot have more sockets or memory before it is started again, by condition
    refused: Mapping[str, str] = msgspec.field(default_factory=dict)
    emulated: str = ""
    # the condition about a suspension to disk
    suspension: Condition | None = None
    # what to do because the host's QEMU was replaced since its start; "": nothing
    outdated: str = ""
    # None: no volume moves to another claim
    move: VolumeMove | None = None
    extra: Mapping[str, Any] = msgspec.field(default_factory=dict)
