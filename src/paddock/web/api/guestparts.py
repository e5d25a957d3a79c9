"""The guest of a machine: its agent's report, its cloud-init documents, and the commands that lead into it. Pure."""

import base64
import binascii
from typing import Any

from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import at, entries, holds, texts
from paddock.fleet.machines import parts, waiting
from paddock.fleet.machines.finding import MachineView
from paddock.kubernetes.meta.ages import timestamp
from paddock.web.answers.machine import WebAccess, WebCloudInit, WebFileSystem, WebGuestPart, WebGuestUser

_SEEDS = ("cloudInitNoCloud", "cloudInitConfigDrive")
_DEFAULT_NAMESPACE = "default"


def guest_part(machine: MachineView, report: Data | None) -> WebGuestPart:
    """Return what the agent reports; without a report, what the status of the instance has of an earlier one."""
    loads: Data = report or {}
    system = loads.get("os") or at(machine.vmi, "status", "guestOSInfo") or {}
    return WebGuestPart(
        agent=holds(machine.vmi, "AgentConnected"),
        os=texts(system, "prettyName") or " ".join(filter(None, (texts(system, "name"), texts(system, "version")))),
        kernel=texts(system, "kernelRelease"),
        hostname=texts(loads, "hostname"),
        timezone=texts(loads, "timezone"),
        users=[WebGuestUser(name=texts(each, "userName"), since=_time(each.get("loginTime"))) for each in entries(loads, "userList")],
        filesystems=[
            WebFileSystem(
                mount=texts(each, "mountPoint"),
                type=texts(each, "fileSystemType"),
                used=_whole(each.get("usedBytes")),
                size=_whole(each.get("totalBytes")),
            )
            for each in entries(loads, "fsInfo", "disks")
        ],
    )


def _time(value: Any) -> str:
    return timestamp(value) if isinstance(value, int | float) and 0 < value < 1e11 else ""


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else -1


def cloud_init(machine: MachineView) -> WebCloudInit:
    """Return the documents that the objects hold. Secrets stay unread: the note names them."""
    user_data = network_data = ""
    secrets: list[str] = []
    for volume in entries(parts.spec_of(machine), "volumes"):
        for seed in _SEEDS:
            source = volume.get(seed)
            if not isinstance(source, dict):
                continue
            user_data = user_data or _document(source, "userData")
            network_data = network_data or _document(source, "networkData")
            secrets += [texts(source, each, "name") for each in ("secretRef", "networkDataSecretRef") if texts(source, each, "name")]
    note = ""
    if secrets:
        note = f"documents are in the Secret {' and the Secret '.join(dict.fromkeys(secrets))}, which the console does not read"
    return WebCloudInit(user_data=user_data, network_data=network_data, note=note)


def _document(source: Data, member: str) -> str:
    if text := texts(source, member):
        return text
    try:
        return base64.b64decode(texts(source, f"{member}Base64"), validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


def access(machine: MachineView, *, is_paddock: bool) -> WebAccess:
    """Return the commands. On a cluster of KubeVirt, the guest agent is out of reach."""
    name = machine.name if machine.namespace == _DEFAULT_NAMESPACE else f"{machine.name} -n {machine.namespace}"
    if machine.vm is None and machine.vmi is None:
        return WebAccess(ssh="", console="", vnc="", exec="", note="the machine has no VirtualMachine on this server")
    note = ""
    if not waiting.is_live(machine):
        note = "the machine does not run"
    elif is_paddock and not holds(machine.vmi, "AgentConnected"):
        note = "no guest agent answers, which exec needs"
    elif not is_paddock:
        note = "exec needs Paddock's own server"
    return WebAccess(
        ssh=f"paddock ssh {name}",
        console=f"paddock console {name}",
        vnc=f"paddock vnc {name}",
        exec=f"paddock exec {name} -- COMMAND" if is_paddock else "",
        note=note,
    )
