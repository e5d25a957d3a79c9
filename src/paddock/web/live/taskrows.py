"""Tasks: work that takes time, taken from the objects that do it."""

from collections.abc import Callable

import msgspec

from paddock.base.jsondata import Data
from paddock.fleet.diagnosis import verdict
from paddock.fleet.diagnosis.scene import ObjectPlace, at, conditions, texts
from paddock.fleet.kinds import MachineKind
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.meta import ages
from paddock.web.answers.rows import WebTaskRow
from paddock.web.live import kindtable as kinds
from paddock.web.live import parts
from paddock.web.live.machinerows import MACHINE_TARGETS
from paddock.web.live.objects import LiveObjects

# Tasks that ended stay in the list for so long.
_SHOWN_SECONDS = 900.0
_REFRESH_SECONDS = 60.0


class TaskKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind whose objects are work."""

    target: Target[Data]
    title: Callable[[Data], str]
    machine: Callable[[Data, LiveObjects], str]
    progress: tuple[str, ...] = ()
    # why the work cannot be cancelled; the place of its machine comes in
    keeps: Callable[[str], str] = lambda machine: ""


class TaskRows:
    """Running tasks, and those that ended in the last quarter of an hour."""

    seconds = _REFRESH_SECONDS

    def __init__(self) -> None:
        self.kinds = (*MACHINE_TARGETS, *(each.target for each in TASK_KINDS))

    async def poll(self, client: Client, namespace: str) -> None:
        """Do nothing; old rows go when the time has come."""

    def rows(self, objects: LiveObjects) -> list[WebTaskRow]:
        """Return all tasks, the newest first."""
        found = [task for kind in TASK_KINDS for data in objects.of(kind.target) if (task := _task(kind, data, objects)) is not None]
        return sorted(found, key=lambda each: each.started, reverse=True)


def _task(kind: TaskKind, data: Data, objects: LiveObjects) -> WebTaskRow | None:
    key = parts.key_of(data)
    judged = verdict.of(ObjectPlace(kind.target.group, kind.target.kind, key.namespace, key.name), data)
    state = _STATES.get(judged.state)
    phase = texts(data, "status", "phase")
    if kind.target is kinds.MIGRATIONS:
        # The verdict knows no phases of migrations: their kind has no conditions.
        state = {"Succeeded": "done", "Failed": "failed"}.get(phase, "running")
    if state is None or _is_idle(kind.target, data, phase):
        return None
    ended = _ended(data) if state != "running" else ""
    if state != "running" and objects.now - (ages.seconds_of(ended) or 0.0) > _SHOWN_SECONDS:
        return None
    machine = kind.machine(data, objects)
    percent = parts.percent_of(data, "status", *kind.progress) if kind.progress else -1
    return WebTaskRow(
        id=f"{kind.target.qualified}/{key.namespace}/{key.name}",
        title=kind.title(data),
        machine=machine,
        namespace=key.namespace,
        state="running" if state == "running" else "done" if state == "done" else "failed",
        percent=100 if state == "done" else percent,
        text=parts.message_of(data) if state != "done" else judged.word,
        started=texts(data, "metadata", "creationTimestamp"),
        ended=ended,
        keeps=kind.keeps(machine) if state == "running" else "it has ended",
    )


_STATES = {"good": "done", "off": "done", "waits": "running", "bad": "failed", "going": "running"}


def _is_idle(target: Target[Data], data: Data, phase: str) -> bool:
    """Return whether nothing is done for an object now: it waits for its first user, or for the hour of a schedule."""
    if target is kinds.DATA_VOLUMES:
        return phase in ("WaitForFirstConsumer", "PendingPopulation", "UploadReady")
    return bool(at(data, "spec", "schedule", "enabled"))


def _ended(data: Data) -> str:
    for path in (("completionTime",), ("restoreTime",), ("creationTime",)):
        if found := texts(data, "status", *path):
            return found
    if found := texts(data, "status", "migrationState", "endTimestamp"):
        return found
    times = [texts(each, "lastTransitionTime") for each in conditions(data).values()]
    transitions = at(data, "status", "phaseTransitionTimestamps") or ()
    times += [texts(each, "phaseTransitionTimestamp") for each in transitions]
    return max(times, default="") or texts(data, "metadata", "creationTimestamp")


# --- the kinds --------------------------------------------------------------------------------------------------------------


def _user_of_claim(data: Data, objects: LiveObjects) -> str:
    return next(iter(objects.claims.get(parts.key_of(data), ())), "")


def _place_at(*path: str) -> Callable[[Data, LiveObjects], str]:
    def find(data: Data, objects: LiveObjects) -> str:
        return objects.places.get(Key(texts(data, "metadata", "namespace"), texts(data, *path)), "")

    return find


def _of_front(front: MachineKind, *path: str) -> Callable[[Data, LiveObjects], str]:
    def find(data: Data, objects: LiveObjects) -> str:
        place = f"{front.word}/{texts(data, 'metadata', 'namespace')}/{texts(data, *path)}"
        return place if any(parts.place(each) == place for each in objects.machines) else ""

    return find


def _named(words: str, *path: str) -> Callable[[Data], str]:
    return lambda data: f"{words} {texts(data, *path) or texts(data, 'metadata', 'name')}"


def _filling(data: Data) -> str:
    source = at(data, "spec", "source") or {}
    if "pvc" in source or "snapshot" in source or at(data, "spec", "sourceRef"):
        verb = "Clone"
    else:
        verb = {"upload": "Upload", "blank": "Create"}.get(next(iter(source), ""), "Import")
    return f"{verb} the volume {texts(data, 'metadata', 'name')}"


def _half_restored(machine: str) -> str:
    return "a restore that ends halfway would leave the disks of two moments"


def _needed(machine: str) -> str:
    return f"{machine} waits for this volume; delete the machine instead" if machine else ""


TASK_KINDS: tuple[TaskKind, ...] = (
    TaskKind(target=kinds.DATA_VOLUMES, title=_filling, machine=_user_of_claim, progress=("progress",), keeps=_needed),
    TaskKind(
        target=kinds.SNAPSHOTS,
        title=_named("Take the snapshot", "metadata", "name"),
        machine=_place_at("spec", "source", "name"),
    ),
    TaskKind(
        target=kinds.RESTORES,
        title=_named("Restore the snapshot", "spec", "virtualMachineSnapshotName"),
        machine=_place_at("spec", "target", "name"),
        keeps=_half_restored,
    ),
    TaskKind(
        target=kinds.CLONES,
        title=_named("Clone into", "spec", "target", "name"),
        machine=_place_at("spec", "source", "name"),
    ),
    TaskKind(target=kinds.EXPORTS, title=_named("Prepare the export", "metadata", "name"), machine=_place_at("spec", "source", "name")),
    TaskKind(target=kinds.MIGRATIONS, title=_named("Migrate", "spec", "vmiName"), machine=_place_at("spec", "vmiName")),
    *(
        TaskKind(
            target=target,
            title=_named("Take the snapshot", "metadata", "name"),
            machine=_of_front(front, *front.adapter.snapshot_machine),
            progress=("progress", "percentage"),
        )
        for target, front in kinds.OWN_SNAPSHOTS.items()
    ),
    *(
        TaskKind(
            target=target,
            title=_named("Clone into", "spec", "target", "name"),
            machine=_of_front(front, *front.adapter.clone_machine),
            progress=front.adapter.clone_percentage,
        )
        for target, front in kinds.OWN_CLONES.items()
    ),
    *(
        TaskKind(
            target=target,
            title=_named("Migrate", "spec", "source", "vmRef", "name"),
            machine=_of_front(front, "spec", "source", "vmRef", "name"),
            progress=("progress", "percentage"),
        )
        for target, front in kinds.OWN_MIGRATIONS.items()
    ),
)
