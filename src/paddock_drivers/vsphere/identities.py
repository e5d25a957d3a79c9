"""The identity of clones. For threads.

vCenter gives a clone the instance UUID and the settings of its specification from its first moment. Another endpoint may leave them out, so
whoever sees a clone end looks at it, and gives it what it lacks. Until then nothing on such a clone says whose it is. If its maker ended in
between, the endpoint's history of tasks says where it comes from: a machine that this account cloned from the same source under the wanted
name, and to which nothing has happened since, is what an earlier attempt has left.
"""

from typing import Any

from pyVmomi import vim, vmodl

from paddock.contract.errors import ProviderError
from paddock_drivers.kit import refusals
from paddock_drivers.vsphere import marks
from paddock_drivers.vsphere.inventory import InventoryRow
from paddock_drivers.vsphere.target import UUID, SeenMachine, VSphereTarget, mark_paths

_BARE = (UUID, "config.template", "runtime.powerState", "snapshot", *mark_paths(*marks.ALL))
_PAGE = 500


class CloneIdentities:
    """Sees to it that clones have the instance UUID and the settings that they are to have."""

    def __init__(self, target: VSphereTarget) -> None:
        self._target = target
        # The specifications of clones that this process began, and has not seen end.
        self._begun: dict[str, Any] = {}

    def begin(self, spec: Any) -> None:
        """Keep the specification of a clone whose task works for longer."""
        self._begun[spec.instanceUuid] = spec

    def ended(self, id: str, task: Any, info: Any) -> bool:
        """Complete the identity of a clone of this process whose task has ended. Returns False while another task works on that."""
        spec = self._begun.get(id)
        if spec is None:
            return True
        ref = info.error.object if isinstance(info.error, vim.fault.DuplicateName) else info.result
        ours = ref is not None and (ref == info.result or self.is_left(ref, info.entity, task))
        if ours and not self.give(ref, spec):
            return False
        self._begun.pop(id, None)
        return True

    def give(self, ref: Any, spec: Any) -> bool:
        """Give a clone what it lacks of its specification. Returns whether it has all; else a task still works on it."""
        keys = [each.key for each in spec.extraConfig if each.key in marks.ALL and each.value]
        row = self._target.inventory.find(ref, self._target.readable((UUID, "config.changeVersion", *mark_paths(*keys))))
        if row is None:
            raise refusals.retry_later("the clone is gone")
        has = SeenMachine(spec.instanceUuid, row.ref, row.properties).marks
        if str(row.get(UUID, "")).lower() == spec.instanceUuid and all(key in has for key in keys):
            return True
        # Somebody who was faster makes this change fail, where the endpoint compares the versions.
        spec.changeVersion = row.get("config.changeVersion")
        return self._target.quick(ref.ReconfigVM_Task(spec), "the clone cannot be given its identity") is not None

    def is_left(self, ref: Any, source: Any, task: Any) -> bool:
        """Return whether a machine is a bare clone of a source that an earlier attempt of this account has left.

        `task` is the attempt that met the name, None if the endpoint began none.
        """
        row = self._target.inventory.find(ref, self._target.readable(_BARE))
        if row is None or not _is_bare(row):
            return False
        try:
            made = any(each.result == ref and _account(each) == self._account(task) for each in self._history(source))
            return made and not self._history(ref)
        except vmodl.MethodFault:
            # Without a history nobody knows where it comes from.
            return False

    def _account(self, task: Any) -> str:
        """The account of this session, as the endpoint writes it in its tasks."""
        info = self._target.state(task)[1] if task is not None else None
        session = self._target.connection.content.sessionManager.currentSession
        return _account(info) or str(session.userName if session is not None else "").lower()

    def _history(self, entity: Any) -> list[Any]:
        """The tasks on an entity that the endpoint remembers."""
        whose = vim.TaskFilterSpec.ByEntity(entity=entity, recursion="self")
        collector = self._target.connection.content.taskManager.CreateCollectorForTasks(vim.TaskFilterSpec(entity=whose, state=["success"]))
        try:
            found: list[Any] = []
            while page := collector.ReadNextTasks(_PAGE):
                found += page
            return found
        finally:
            collector.DestroyCollector()


def is_duplicate(error: ProviderError) -> bool:
    """Return whether a machine could not be made because its name is taken."""
    return isinstance(error.__cause__, vim.fault.DuplicateName)


def _is_bare(row: InventoryRow) -> bool:
    """Return whether a machine is as a clone is at first: off, no template, without snapshots, and nobody's."""
    marked = SeenMachine("", row.ref, row.properties).marks
    off = str(row.get("runtime.powerState", "")) == "poweredOff"
    return off and not marked and row.get("snapshot") is None and not row.get("config.template")


def _account(info: Any) -> str:
    reason = getattr(info, "reason", None)
    return str(reason.userName).lower() if isinstance(reason, vim.TaskReasonUser) else ""
