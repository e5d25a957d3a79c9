"""The rows that several kinds have in common, and the phrases that say why."""

from collections.abc import Mapping

from paddock.kubernetes.schema.dialect import KindId
from paddock.kubevirt.plan.changes.differences import ValueChange
from paddock.kubevirt.plan.changes.effects import Effect, EffectRow

LIVE, NONE, LOSS, RECREATE, RESTART = Effect.LIVE, Effect.NONE, Effect.LOSS, Effect.RECREATE, Effect.RESTART
Rows = tuple[EffectRow, ...]
# What a module of effects says: the rows of each of its kinds.
Effects = Mapping[KindId, Rows]

COMING = (ValueChange.ADDED,)
GOING = (ValueChange.REMOVED,)
UP = (ValueChange.UP,)
DOWN = (ValueChange.DOWN,)

NEW_DISK = "a disk keeps what it was made from and where it lies: anything else means a new disk without the old one's data"
ORDER = "the guest sees the disks in their new order after a restart"
SHRINK = "a disk cannot shrink: a smaller one is a new disk without the old one's data"
GROW = "the claim grows at once if its class allows it; the guest still has to grow its file system"
TOPOLOGY = "the guest sees its processors and memory as they were when it started"
PLUGGED = "plugged in while the machine runs, up to the maximum it was started with; beyond that at its next restart"
HARDWARE = "the guest keeps the hardware it was started with until it restarts"
FIRST_BOOT = "the guest gets it at once and reads it on its first boot only"
REWRITTEN = "written anew at the next restart; the guest reads most of it on its first boot only"
POWER = "says at once whether the machine runs"
LABELS = "carried over at once"
MADE_ONCE = "counts when the machine is made; this one stays as it is"
ONCE = "it happens once: make a new object for another one"

WIRING = "machines on the network keep the old wiring until they restart"


def members(at: str, names: str, effect: Effect, why: str) -> Rows:
    """The same for several members of one place."""
    return tuple(EffectRow(f"{at}.{name}" if at else name, effect, why) for name in names.split())


def size(path: str, *, grow: str = GROW) -> Rows:
    return (EffectRow(path, LIVE, grow), EffectRow(path, LOSS, SHRINK, DOWN))


def pluggable(path: str, growth: str) -> Rows:
    """Processors and memory that grow while the guest runs."""
    return (EffectRow(path, RESTART, TOPOLOGY, growth=growth), EffectRow(path, LIVE, PLUGGED, UP, growth=growth))


FIXED: Rows = (EffectRow("spec", RECREATE, ONCE),)
KEPT: Rows = (EffectRow("spec", NONE, "machines keep it as it was when they were made"),)
DATA_VOLUME: Rows = (EffectRow("spec", LOSS, "a DataVolume is filled once: another one means a new disk without the old one's data"),)
DATA_SOURCE: Rows = (EffectRow("spec", NONE, "disks that exist are independent copies; new ones are made from it"),)
SETTINGS: Rows = (EffectRow("spec", LIVE, "counts for what is made, started or moved from now on"),)
