"""Joins the subresources to a server: one call."""

import asyncio

from paddock.app.subresources.environment import DatagramFlow, MachineApi, SubresourceEnvironment, UsageHistoryReader
from paddock.app.subresources.subresources import SubresourceApi
from paddock.base.jsondata import Data
from paddock.engine.engine import Engine
from paddock.engine.networks.errors import GuestUnreachable
from paddock.kubernetes.runtime.recorder import Recorder
from paddock.kubernetes.runtime.reference import InvolvedObject
from paddock.kubevirt.kinds.instance import GROUP
from paddock.server.api import Api
from paddock.server.context import ServerParts


def install(api: Api, parts: ServerParts, engine: Engine, recorder: Recorder, usage: UsageHistoryReader, release: int) -> SubresourceApi:
    """Serve the group from now on, also while the engine still looks at its host. Whoever calls closes what is returned."""

    def tell(instance: Data, kind: str, reason: str, note: str) -> None:
        meta = instance["metadata"]
        about = InvolvedObject(
            f"{GROUP}/v1", "VirtualMachineInstance", meta.get("namespace", ""), meta["name"], meta["uid"], meta["resourceVersion"]
        )
        recorder.tell(about, kind, reason, note)

    environment = SubresourceEnvironment(parts, _Machines(engine), _Networks(engine), engine.consoles, tell, usage, release)
    served = SubresourceApi(environment)
    served.serve(api)
    return served


class _Machines:
    """The engine's machines; none before it has taken over those that run."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def get(self, id: str) -> MachineApi | None:
        return self._engine.machines.get(id) if hasattr(self._engine, "machines") else None


class _Networks:
    """The engine's ways to guests."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def dial(self, owner: str, name: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        self._check()
        return await self._engine.networks.dial(owner, name, port)

    async def datagrams(self, owner: str, name: str, port: int) -> DatagramFlow:
        self._check()
        return await self._engine.networks.datagrams(owner, name, port)

    def _check(self) -> None:
        if not hasattr(self._engine, "machines"):
            raise GuestUnreachable("cannot reach guests yet", why="the engine looks at its host", fix="try again in a moment")
