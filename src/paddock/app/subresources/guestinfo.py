"""guestosinfo, userlist and filesystemlist: what a guest's agent tells, in KubeVirt's shapes (docs/spec/kubevirt.md 4.1)."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from paddock.app.subresources import queries
from paddock.app.subresources.environment import AgentApi
from paddock.app.subresources.instances import InstanceFinder
from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.engine.machine.errors import AgentError
from paddock.engine.machine.guest import AgentInfo, GuestFilesystem, GuestOs, GuestUser
from paddock.kubernetes.meta import failure
from paddock.server.context import RequestContext
from paddock.server.edge.http import HttpResponse

T = TypeVar("T")
_API_VERSION = "kubevirt.io/v1"


class GuestInfo:
    """Asks agents. A machine without one is a conflict, which KubeVirt tells with 500 and plain text: its clients show just that."""

    def __init__(self, instances: InstanceFinder) -> None:
        self._instances = instances

    async def everything(self, call: RequestContext) -> HttpResponse:
        """All that the agent tells."""
        return await self._answer(call, self._everything)

    async def users(self, call: RequestContext) -> HttpResponse:
        """Answer with the users that are logged in."""
        return await self._answer(call, self._users)

    async def filesystems(self, call: RequestContext) -> HttpResponse:
        """Answer with the mounted file systems."""
        return await self._answer(call, self._filesystems)

    async def _answer(self, call: RequestContext, tell: Callable[[AgentApi], Awaitable[Data]]) -> HttpResponse:
        instance = self._instances.asked(call)
        try:
            agent = self._instances.with_agent(instance).agent
        except failure.Failure as refusal:
            return HttpResponse(500, refusal.message.encode(), (("content-type", "text/plain; charset=utf-8"),))
        return queries.said(await tell(agent))

    async def _everything(self, agent: AgentApi) -> Data:
        info = await _asked(agent.info())
        data: Data = {
            "kind": "VirtualMachineInstanceGuestAgentInfo",
            "apiVersion": _API_VERSION,
            "metadata": {},
            **about_agent(info),
            "hostname": await _tried(agent.hostname(), ""),
            "os": about_os(await _tried(agent.os(), GuestOs())),
        }
        zone = await _tried(agent.timezone(), None)
        data["timezone"] = f"{zone.name}, {zone.offset}" if zone is not None else ""
        data["userList"] = [about_user(each) for each in await _tried(agent.users(), ())]
        data["fsInfo"] = {"disks": [about_filesystem(each) for each in await _tried(agent.filesystems(), ())]}
        data["fsFreezeStatus"] = "frozen" if await _tried(agent.frozen(), False) else "thawed"
        return {name: value for name, value in data.items() if value != ""}

    async def _users(self, agent: AgentApi) -> Data:
        return _listed("VirtualMachineInstanceGuestOSUserList", [about_user(each) for each in await _asked(agent.users())])

    async def _filesystems(self, agent: AgentApi) -> Data:
        return _listed("VirtualMachineInstanceFileSystemList", [about_filesystem(each) for each in await _asked(agent.filesystems())])


def about_agent(info: AgentInfo) -> Data:
    return {
        "guestAgentVersion": info.version,
        "supportedCommands": [{"name": name, "enabled": enabled} for name, enabled in info.commands],
    }


def about_os(guest_os: GuestOs) -> Data:
    named = {
        "name": guest_os.name,
        "kernelRelease": guest_os.kernel_release,
        "version": guest_os.version,
        "prettyName": guest_os.pretty_name,
        "versionId": guest_os.version_id,
        "kernelVersion": guest_os.kernel_version,
        "machine": guest_os.machine,
        "id": guest_os.id,
    }
    return {name: value for name, value in named.items() if value}


def about_user(guest_user: GuestUser) -> Data:
    """Somebody who is logged in."""
    data: Data = {"userName": guest_user.name, "loginTime": guest_user.login_time}
    return {**data, "domain": guest_user.domain} if guest_user.domain else data


def about_filesystem(guest_filesystem: GuestFilesystem) -> Data:
    data: Data = {
        "diskName": guest_filesystem.disk,
        "mountPoint": guest_filesystem.mount_point,
        "fileSystemType": guest_filesystem.type,
        "usedBytes": guest_filesystem.used_bytes,
        "totalBytes": guest_filesystem.total_bytes,
    }
    if guest_filesystem.disks:
        data["disk"] = [{"serial": serial, "busType": bus} if serial else {"busType": bus} for serial, bus in guest_filesystem.disks]
    return data


def _listed(kind: str, items: list[Data]) -> Data:
    return {"apiVersion": _API_VERSION, "kind": kind, "metadata": {}, "items": items}


async def _asked(question: Awaitable[T]) -> T:
    """The agent's answer, without which there is nothing to say."""
    try:
        return await question
    except PaddockError as error:
        raise failure.internal(str(error)) from error


async def _tried(question: Awaitable[T], otherwise: T) -> T:
    """The agent's answer; agents differ in what they can tell."""
    try:
        return await question
    except AgentError as error:
        if error.reason == "NotConnected":
            raise failure.internal(str(error)) from error
        return otherwise
