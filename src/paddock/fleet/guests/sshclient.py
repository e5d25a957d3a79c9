"""The command line of the system's ssh for a machine: over the server's port-forward, with host keys of Paddock's own.

A host key is remembered by the UID of the machine, so another machine of the same name is no stranger with a false key. A machine whose
root disk starts anew with each run makes new host keys each time; it goes by the UID of the run.
"""

import asyncio
import base64
import binascii
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import orjson
import yaml

from paddock.base import ownnames
from paddock.base.errors import PaddockError, Terminal
from paddock.fleet.diagnosis.scene import at, entries, texts
from paddock.fleet.guests import forwarding
from paddock.fleet.guests.guest import GuestAccess
from paddock.fleet.machines.finding import MachineView
from paddock.kubernetes.meta import cloudconfig

SUFFIX = ".paddock"
# Written by whatever made the machine, when it knows.
USER_ANNOTATION = ownnames.SSH_USER.name
_EPHEMERAL = ("containerDisk", "ephemeral", "emptyDisk")
# The users that the cloud images of distributions have, by a word in the guest's `os-release` id or in the name of its image.
_OF_IMAGES = {
    "debian": "debian",
    "ubuntu": "ubuntu",
    "fedora": "fedora",
    "centos": "cloud-user",
    "almalinux": "almalinux",
    "rocky": "rocky",
    "rhel": "cloud-user",
    "opensuse": "opensuse",
    "arch": "arch",
    "alpine": "alpine",
    "cirros": "cirros",
    "tiny": "root",
}
_BANNER = b"SSH-"
_PAUSE_SECONDS = 1.0


class NoSshClient(Terminal):
    """This host has no ssh."""


class NoSshServer(Terminal):
    """The guest has no SSH server that answers."""


class SshTarget(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that ssh needs to know of a machine. `proxy` is the command that connects to its SSH port."""

    name: str
    namespace: str
    uid: str
    user: str
    proxy: tuple[str, ...]
    known_hosts: Path

    def options(self) -> list[tuple[str, str]]:
        """The options of ssh_config, in its words."""
        return [
            ("ProxyCommand", shlex.join(self.proxy).replace("%", "%%")),
            ("HostKeyAlias", f"paddock-{self.uid}"),
            ("UserKnownHostsFile", _quoted(str(self.known_hosts))),
            ("StrictHostKeyChecking", "accept-new"),
            ("CheckHostIP", "no"),
        ]


def _quoted(path: str) -> str:
    return f'"{path}"' if " " in path else path


def client() -> str:
    """Return the path of ssh. Raises `NoSshClient`."""
    found = shutil.which("ssh")
    if found is None:
        fix = "install openssh-client, or use `paddock exec NAME -- CMD` and `paddock console NAME`"
        raise NoSshClient("cannot run ssh", why="this host has no ssh client", fix=fix)
    return found


def known_hosts(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the file of host keys, in a directory that exists."""
    state = Path(environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "paddock"
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    return state / "known_hosts"


def target(machine: MachineView, user: str, proxy: Sequence[str]) -> SshTarget:
    """Return the target for a machine; `user` may be empty."""
    uid = key_uid(machine)
    return SshTarget(
        name=machine.name, namespace=machine.namespace, uid=uid, user=user, proxy=(*proxy, str(machine)), known_hosts=known_hosts()
    )


def proxy_command(server_options: Iterable[str]) -> list[str]:
    """Return the command that connects standard input and output with the SSH port of the machine that follows."""
    return [sys.executable, "-m", "paddock.app", "forward", *server_options, "--stdio", "22"]


def key_uid(machine: MachineView) -> str:
    """Return the UID that the machine's host keys belong to."""
    whole = machine.vm if machine.vm is not None else machine.vmi
    run = texts(machine.vmi, "metadata", "uid")
    if run and is_ephemeral(at(machine.vmi, "spec") or {}):
        return run
    return texts(whole, "metadata", "uid") or texts(machine.data, "metadata", "uid")


def is_ephemeral(spec: Mapping[str, Any]) -> bool:
    """Return whether the disk that an instance boots from is made anew for each run."""
    disks = entries(spec, "domain", "devices", "disks")
    first = min(disks, key=lambda each: each.get("bootOrder") or len(disks) + 1, default={})
    volume = next((each for each in entries(spec, "volumes") if each.get("name") == first.get("name")), {})
    return any(kind in volume for kind in _EPHEMERAL)


def arguments(target: SshTarget, given: Sequence[str], command: Sequence[str], port: int = 22) -> list[str]:
    """Return the arguments of ssh, its own name apart. `given` are options that are passed on."""
    proxy = (*target.proxy[:-2], str(port), target.proxy[-1])
    options = [f"-o{name}={value}" for name, value in msgspec.structs.replace(target, proxy=proxy).options()]
    user = ["-l", target.user] if target.user else []
    return [*options, *user, *given, f"{target.name}{SUFFIX}", *(["--", *command] if command else [])]


def config(targets: Iterable[SshTarget], identity: str = "") -> str:
    """Return an ssh_config by which `ssh NAME.paddock` reaches each machine."""
    lines = ["# Machines of Paddock; made by `paddock ssh --config`."]
    for each in targets:
        lines += ["", f"Host {each.name}{SUFFIX} {each.name}.{each.namespace}{SUFFIX}", f"  HostName {each.name}"]
        lines += [f"  User {each.user}"] if each.user else []
        lines += [f"  IdentityFile {_quoted(identity)}"] if identity else []
        lines += [f"  {name} {value}" for name, value in each.options()]
    return "\n".join(lines) + "\n"


# --- the user -----------------------------------------------------------------------------------------------------------------


async def user_of(guest: GuestAccess) -> str:
    """Return the user to log in as: the one that the machine's maker noted, cloud-init's, or its image's. Empty if none is known."""
    machine = guest.machine
    noted = next((name for data in (machine.data, machine.vm) if (name := at(data, "metadata", "annotations", USER_ANNOTATION))), "")
    if isinstance(noted, str) and noted:
        return noted
    spec = at(machine.vmi, "spec") or at(machine.vm, "spec", "template", "spec") or {}
    user = user_in(await _user_data(guest, spec))
    return user or user_of_image(texts(machine.vmi, "status", "guestOSInfo", "id"), *_images(machine, spec))


async def _user_data(guest: GuestAccess, spec: Mapping[str, Any]) -> str:
    for volume in entries(spec, "volumes"):
        source = volume.get("cloudInitNoCloud") or volume.get("cloudInitConfigDrive")
        if not isinstance(source, dict):
            continue
        if texts(source, "userData"):
            return texts(source, "userData")
        if texts(source, "userDataBase64"):
            return _decoded(texts(source, "userDataBase64"))
        secret = texts(source, "secretRef", "name")
        if secret:
            return await _of_secret(guest, secret)
    return ""


async def _of_secret(guest: GuestAccess, name: str) -> str:
    """Return the user data of a Secret; nothing if the user may not read it."""
    try:
        path = f"/api/v1/namespaces/{guest.key.namespace}/secrets/{name}"
        found = orjson.loads(await guest.client.request("GET", path))
    except PaddockError:
        return ""
    return _decoded(texts(found, "data", "userdata") or texts(found, "data", "userData"))


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""


def user_in(user_data: str) -> str:
    """Return the user that `#cloud-config` makes and who may log in; empty if it names none."""
    if not user_data.startswith("#cloud-config") or cloudconfig.problem(user_data):
        return ""
    document = yaml.load(user_data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    if not isinstance(document, dict):
        return ""
    users = document.get("users")
    for each in users if isinstance(users, list) else []:
        name = each.get("name") if isinstance(each, dict) else None
        if isinstance(name, str) and name:
            return name
    user = document.get("user")
    return user if isinstance(user, str) else texts(user, "name")


def user_of_image(*words: str) -> str:
    """Return the user of the image that the words describe."""
    return next((user for word in words for name, user in _OF_IMAGES.items() if name in word.lower()), "")


def _images(machine: MachineView, spec: Mapping[str, Any]) -> list[str]:
    """The names of a machine's images."""
    named = [texts(volume, "containerDisk", "image") for volume in entries(spec, "volumes")]
    for template in entries(machine.vm, "spec", "dataVolumeTemplates"):
        source = at(template, "spec", "source") or {}
        named += [text for each in source.values() if isinstance(each, dict) for text in each.values() if isinstance(text, str)]
        named.append(texts(template, "spec", "sourceRef", "name"))
    return [each for each in named if each]


# --- the SSH server of the guest ------------------------------------------------------------------------------------------------


async def wait_for_server(guest: GuestAccess, port: int, greeting: float, seconds: float) -> None:
    """Wait so long for an SSH server that greets at the port of the guest; raise `NoSshServer` if none does."""
    clock = guest.server.clock
    end = clock.seconds() + seconds
    while not (said := await forwarding.banner(guest, port, greeting)).startswith(_BANNER):
        if clock.seconds() >= end:
            raise _silent(guest, port, said)
        await asyncio.sleep(_PAUSE_SECONDS)


def _silent(guest: GuestAccess, port: int, said: bytes) -> NoSshServer:
    why = f"no SSH server answers on port {port} of it" if not said else f"what answers on port {port} of it is no SSH server"
    name = guest.name
    fix = f"wait until it has booted (--wait), start an SSH server in it, or use `paddock exec {name} -- CMD` or `paddock console {name}`"
    return NoSshServer(f"cannot log in to {name}", why=why, fix=fix)
