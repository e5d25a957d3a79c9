"""The target: machines by their ids, and the tasks of vSphere that work on them. For threads."""

import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

import msgspec
from pyVmomi import vim, vmodl

from paddock.contract.messages import ObjectIdentity
from paddock_drivers.kit import refusals
from paddock_drivers.kit.progress import DONE, RUNNING, TaskProgress, failed
from paddock_drivers.vsphere import failures, identifiers, marks
from paddock_drivers.vsphere.inventory import InventoryRow, VSphereInventory
from paddock_drivers.vsphere.session import VSphereConnection

UUID = "config.instanceUuid"
_EXTRA = "config.extraConfig"
# All that a change of a machine is decided by.
WHOLE = ("name", "config", "runtime", "guest", "recentTask", "snapshot", "parent", "resourcePool", "environmentBrowser")
_PAUSES = (0.02, 0.05, 0.1, 0.2)
# Ended tasks that the target no longer has.
FORGOTTEN = "forgotten"


def mark_paths(*keys: str) -> tuple[str, ...]:
    """Return the properties that hold marks."""
    return tuple(f'{_EXTRA}["{key}"]' for key in keys)


class SeenMachine(msgspec.Struct, frozen=True):
    """A machine, and what was read of it."""

    id: str
    ref: Any
    properties: dict[str, Any]

    @property
    def name(self) -> str:
        """Its name as people write it."""
        return unquote(str(self.properties.get("name") or ""))

    @property
    def marks(self) -> dict[str, str]:
        """The marks that were read, one by one or with all settings."""
        config = self.properties.get("config")
        listed = list(config.extraConfig or ()) if config is not None else []
        single = [value for path, value in self.properties.items() if path.startswith(f"{_EXTRA}[")]
        return marks.read([*listed, *single])

    def get(self, path: str, default: Any = None) -> Any:
        """Return a property, or the default when it is not set."""
        found = self.properties.get(path)
        return default if found is None else found

    @property
    def is_on(self) -> bool:
        """Return whether it runs, as far as `runtime` was read."""
        return str(self.properties["runtime"].powerState) == "poweredOn"


class VSphereTarget:
    """A vCenter or an ESXi host, by machines and tasks."""

    def __init__(self, connection: VSphereConnection, inventory: VSphereInventory) -> None:
        self.connection = connection
        self.inventory = inventory
        self.settings = connection.settings
        # References by instance UUID. What is read through one is checked, so a wrong one costs a call and no more.
        self._known: dict[str, Any] = {}
        self._lacks_keys = False

    # --- machines ---------------------------------------------------------------------------------------------------------

    def find(self, text: str, paths: Sequence[str]) -> SeenMachine | None:
        """Return the machine of an id; None when the target positively does not have it."""
        wanted = identifiers.machine_id(text)
        if wanted is None:
            return None
        known = self._known.get(wanted)
        found = self._seen(wanted, known, paths) if known is not None else None
        if found is None:
            ref = self.inventory.machine_of(wanted)
            found = self._seen(wanted, ref, paths) if ref is not None else None
            if found is None:
                self._known.pop(wanted, None)
                return None
            self._known[wanted] = ref
        return found

    def _seen(self, id: str, ref: Any, paths: Sequence[str]) -> SeenMachine | None:
        row = self.inventory.find(ref, self.readable((*paths, UUID)))
        if row is None:
            return None
        # A host that is away leaves machines without a configuration; they are no others for that.
        config = row.properties.get("config")
        said = row.get(UUID) or (config.instanceUuid if config is not None else None)
        return SeenMachine(id, ref, row.properties) if said is None or str(said).lower() == id else None

    def machine(self, text: str, owner: ObjectIdentity | None = None, paths: Sequence[str] = WHOLE) -> SeenMachine:
        """Return the machine of an id; raises NotFound when there is none, and Conflict when it is not this owner's."""
        found = self.find(text, (*paths, *mark_paths(marks.OWNER_UID, marks.OWNER)) if "config" not in paths else paths)
        if found is None:
            raise refusals.not_found(f"machine {text[:64]} does not exist")
        marks.check_owner(found.name, found.marks, owner)
        return found

    def every(self, paths: Sequence[str]) -> list[SeenMachine]:
        """Return all machines, without templates."""
        rows = self._all((*paths, "name", UUID, "config.template"))
        return [_row(each) for each in rows if each.get(UUID) and not each.get("config.template")]

    def _all(self, paths: Sequence[str]) -> list[InventoryRow]:
        try:
            return self.inventory.every(vim.VirtualMachine, self.readable(paths))
        except vmodl.query.InvalidProperty:
            # An older endpoint does not read single settings.
            if self._lacks_keys:
                raise
            self._lacks_keys = True
            return self.inventory.every(vim.VirtualMachine, self.readable(paths))

    def readable(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Return properties in a form that the target reads, each once."""
        wanted = dict.fromkeys(paths)
        if "config" in wanted:
            # The whole includes the parts.
            return tuple(each for each in wanted if not each.startswith("config."))
        return tuple(dict.fromkeys(_EXTRA if self._lacks_keys and each.startswith(f"{_EXTRA}[") else each for each in wanted))

    # --- tasks ------------------------------------------------------------------------------------------------------------

    def state(self, task: Any) -> tuple[str, Any]:
        """Return the state of a task of vSphere and its information: queued, running, success, error or forgotten."""
        row = self.inventory.find(task, ("info",))
        info = row.get("info") if row is not None else None
        return (str(info.state), info) if info is not None else (FORGOTTEN, None)

    def quick(self, task: Any, what: str) -> Any:
        """Wait a moment for a task. Returns None when it still works, and its information when it has succeeded; raises its fault."""
        end = time.monotonic() + self.settings.quick_seconds
        for pause in (*_PAUSES, *[0.3] * 1000):
            state, info = self.state(task)
            if state == "error":
                raise failures.of(info.error, what) from info.error
            if state in ("success", FORGOTTEN):
                return info if info is not None else True
            if time.monotonic() + pause > end:
                return None
            time.sleep(pause)
        return None

    def task(self, moref: str) -> Any:
        """Return a task by its reference."""
        return vim.Task(moref, self.connection.adapter)

    def is_worked_on(self, machine: SeenMachine, verb: str = "") -> bool:
        """Return whether a task works on a machine, of those that were read with it; `verb` is the end of the task's name."""
        rows = self.inventory.read(machine.get("recentTask", ()), ("info",))
        infos = [each.get("info") for each in rows]
        working = [each for each in infos if each is not None and str(each.state) in ("queued", "running")]
        return any(not verb or str(each.descriptionId or "").endswith(verb) for each in working)


def reference(task: Any) -> str:
    """Return the reference of a task."""
    return str(task._moId)


def progress(state: str, info: Any) -> TaskProgress:
    """Judge a task of vSphere by itself."""
    if state in ("queued", "running"):
        return RUNNING
    if state == "error":
        fault = getattr(info, "error", None)
        return failed(failures.reason(fault) if isinstance(fault, Exception) else "the task failed and said no reason")
    return DONE


def _row(row: InventoryRow) -> SeenMachine:
    return SeenMachine(str(row.get(UUID)).lower(), row.ref, row.properties)
