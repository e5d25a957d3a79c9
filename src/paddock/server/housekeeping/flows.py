"""Flow control's objects: those of the start, and whether a schema leads anywhere."""

import asyncio
from typing import Any

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure
from paddock.server.builtin import flowdefaults
from paddock.server.builtin.flowcontrol import GROUP
from paddock.server.context import ServerParts
from paddock.server.housekeeping.keyqueue import KeyQueue
from paddock.server.objects.encoding import decode
from paddock.server.objects.requests import Options, Proposal
from paddock.server.security.flow.control import LEVELS, SCHEMAS
from paddock.server.store.contract import CommittedWrite, StoreKey

_WHO = Options(user="system:apiserver", groups=("system:masters",), manager="api-priority-and-fairness-config-producer-v1", unasked=True)
_STATUS = Options(
    user="system:apiserver",
    groups=("system:masters",),
    manager="api-priority-and-fairness-config-consumer-v1",
    subresource="status",
)
_AUTOUPDATE = "apf.kubernetes.io/autoupdate-spec"


async def ensure(parts: ServerParts) -> None:
    """Make what is missing, and bring up to date what nobody has taken over."""
    wanted = [("FlowSchema", name, spec) for name, spec in flowdefaults.SCHEMAS.items()]
    wanted += [("PriorityLevelConfiguration", name, spec) for name, spec in flowdefaults.LEVELS.items()]
    # Together, so that they share a commit.
    await asyncio.gather(*(_ensure(parts, kind, name, spec) for kind, name, spec in wanted))


async def _ensure(parts: ServerParts, kind: str, name: str, spec: Data) -> None:
    resource = parts.registry.find(GROUP, "v1", f"{kind.lower()}s")
    if resource is None:
        return
    record = parts.store.decided(StoreKey(resource.collection, "", name))
    if record is None:
        meta = {"name": name, "annotations": {_AUTOUPDATE: "true"}}
        data = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": meta, "spec": _copy(spec)}
        await parts.writer.create(resource, "", data, _WHO)
        return
    old = decode(record.value)
    if old.get("spec") != spec and (old["metadata"].get("annotations") or {}).get(_AUTOUPDATE) == "true":
        await parts.writer.replace(
            resource, "", name, lambda old: Proposal({**old, "metadata": dict(old["metadata"]), "spec": _copy(spec)}), _WHO
        )


def _copy(spec: Any) -> Any:
    if isinstance(spec, dict):
        return {key: _copy(value) for key, value in spec.items()}
    return [_copy(each) for each in spec] if isinstance(spec, list) else spec


class FlowSchemaStatusController:
    """Tells of each FlowSchema whether the level that it names is there, and makes again what the server needs."""

    def __init__(self, parts: ServerParts) -> None:
        self._parts = parts
        self.chores: KeyQueue[str] = KeyQueue("flow control", self._reconcile)
        parts.store.follow(self._changed)

    def start(self) -> None:
        """Look at all, then at what changes."""
        self._offer_all()
        self.chores.start()

    def _changed(self, changes: tuple[CommittedWrite, ...]) -> None:
        for change in changes:
            if change.key.collection == SCHEMAS:
                self.chores.offer(change.key.name)
            elif change.key.collection == LEVELS:
                self._offer_all()

    def _offer_all(self) -> None:
        for record in self._parts.store.scan(SCHEMAS):
            self.chores.offer(record.key.name)
        for name in (*flowdefaults.MANDATORY_SCHEMAS, *flowdefaults.MANDATORY_LEVELS):
            self.chores.offer(name)

    async def _reconcile(self, name: str) -> None:
        if name in flowdefaults.MANDATORY_LEVELS:
            await _ensure(self._parts, "PriorityLevelConfiguration", name, flowdefaults.LEVELS[name])
        if name in flowdefaults.MANDATORY_SCHEMAS:
            await _ensure(self._parts, "FlowSchema", name, flowdefaults.SCHEMAS[name])
        record = self._parts.store.decided(StoreKey(SCHEMAS, "", name))
        resource = self._parts.registry.find(GROUP, "v1", "flowschemas")
        if record is None or resource is None:
            return
        schema = decode(record.value)
        level = schema["spec"]["priorityLevelConfiguration"]["name"]
        condition = _dangling(level, there=self._parts.store.decided(StoreKey(LEVELS, "", level)) is not None)
        known = (schema.get("status") or {}).get("conditions") or []
        old: Data = next((each for each in known if each.get("type") == condition["type"]), {})
        if {**old, "lastTransitionTime": None} == {**condition, "lastTransitionTime": None}:
            return
        since = old.get("lastTransitionTime") if old.get("status") == condition["status"] else self._parts.clock.now()
        said = [*(each for each in known if each is not old), {**condition, "lastTransitionTime": since}]
        try:
            await self._parts.writer.replace(resource, "", name, lambda now: Proposal({**now, "status": {"conditions": said}}), _STATUS)
        except failure.Failure as gone:
            if gone.code != 404:
                raise


def _dangling(level: str, *, there: bool) -> Data:
    said = f'This FlowSchema references the PriorityLevelConfiguration object named "{level}"'
    if there:
        return {"type": "Dangling", "status": "False", "reason": "Found", "message": f"{said} and it exists"}
    return {"type": "Dangling", "status": "True", "reason": "NotFound", "message": f"{said} but there is no such object"}
