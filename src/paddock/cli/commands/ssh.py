"""`paddock ssh`: logs in to a guest with the system's ssh, over the server; no route to the guest is needed."""

import argparse
import os
from collections.abc import Sequence
from typing import NoReturn

from paddock.cli import arguments, servers
from paddock.cli import guestcommands as commandline
from paddock.cli.console import Console
from paddock.fleet.guests import guest as guests
from paddock.fleet.guests import sshclient
from paddock.fleet.guests.sshclient import SshTarget
from paddock.fleet.machines import finding
from paddock.fleet.servers.session import ServerSession

_TEXT = """Log in to a guest, or run a command in it, with this host's ssh. The connection goes over the server, so the guest needs no route
from here. Without a user, Paddock takes the one of the machine's cloud-init or image. Host keys are kept in a file of Paddock's own, by the
machine's UID, so that a name may be used again. --config prints an ssh_config with which ssh, scp, rsync and Ansible reach NAME.paddock."""
_EXITS = {
    0: "success; other codes are those of the command in the guest",
    2: "wrong usage, no such machine, no ssh here, or no SSH server in the guest",
    255: "ssh could not log in",
}
_GREETING_SECONDS = 15.0


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("ssh", _TEXT, "[OPTIONS] [USER@]NAME [-- CMD [ARGS]]", _EXITS)
    arguments.add_machine(options, commandline.MACHINE_TEXT, optional=True, metavar="[USER@]NAME")
    commandline.add_command(options, "Command to run instead of a shell")
    options.add_argument("-l", "--user", metavar="USER", default="", help="User of the guest (default: cloud-init's, or the image's)")
    options.add_argument("-i", "--identity", metavar="FILE", action="append", default=[], help="Private key to use; repeatable")
    options.add_argument("-p", "--port", metavar="PORT", type=int, default=22, help="Port of the guest's SSH server (default: 22)")
    for letter, text in (("L", "Forward a port of this host"), ("R", "Forward a port of the guest"), ("D", "Serve SOCKS on a port")):
        options.add_argument(f"-{letter}", metavar="SPEC", action="append", default=[], help=f"{text}, as ssh does; repeatable")
    options.add_argument("-t", "--tty", action="store_true", help="Give the command a terminal")
    options.add_argument("-o", "--option", metavar="NAME=VALUE", action="append", default=[], help="Option of ssh; repeatable")
    options.add_argument("--wait", action="store_true", help="Wait until the SSH server answers")
    arguments.add_timeout(options, 300, "With --wait: longest time to wait")
    options.add_argument("--config", action="store_true", help="Print an ssh_config for the machine, or for all of the namespace")
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    options = parser()
    parsed = commandline.parse(options, argv)
    if not parsed.name and not parsed.config:
        options.error("name a machine, or ask for --config")
    if not 1 <= parsed.port <= 65535:
        options.error(f"--port {parsed.port} is no port")
    user, at, name = (parsed.name or "").rpartition("@")
    parsed.name, parsed.user = name, user if at else parsed.user
    if not parsed.config:
        _log_in(parsed, console)
    console.out(sshclient.config(servers.serve(_every(parsed, console)), (parsed.identity or [""])[0]))
    return 0


def _log_in(parsed: argparse.Namespace, console: Console) -> NoReturn:
    program = sshclient.client()
    target = servers.serve(_target(parsed, console))
    words = sshclient.arguments(target, _passed_on(parsed), parsed.command, parsed.port)
    console.flush()
    # In place of this process: signals and the terminal are ssh's own.
    os.execv(program, [program, *words])


def _passed_on(parsed: argparse.Namespace) -> list[str]:
    """The options that are ssh's own."""
    words = [word for letter in "LRD" for value in getattr(parsed, letter) for word in (f"-{letter}", value)]
    words += [word for value in parsed.option for word in ("-o", value)]
    words += [word for value in parsed.identity for word in ("-i", value)]
    return [*words, *(["-t"] if parsed.tty else [])]


async def _target(parsed: argparse.Namespace, console: Console) -> SshTarget:
    async with commandline.reached(parsed, console, "log in to the guest") as guest:
        await sshclient.wait_for_server(guest, parsed.port, _GREETING_SECONDS, parsed.timeout if parsed.wait else 0.0)
        user = parsed.user or await sshclient.user_of(guest)
        return sshclient.target(guest.machine, user, sshclient.proxy_command(commandline.server_options(parsed)))


async def _every(parsed: argparse.Namespace, console: Console) -> list[SshTarget]:
    async with servers.connected(parsed, console) as server:
        return await _targets(parsed, server)


async def _targets(parsed: argparse.Namespace, server: ServerSession) -> list[SshTarget]:
    if parsed.name:
        found = [await finding.find(server.client, parsed.name, server.namespace)]
    else:
        found = [each for each in await finding.every(server.client, server.namespace) if each.vm_key or each.vmi_key]
    targets = []
    for machine in found:
        # What ssh starts may run with another namespace as its default.
        parsed.namespace = machine.namespace
        proxy = sshclient.proxy_command(commandline.server_options(parsed))
        key = machine.vmi_key or finding.needs_vm(machine, "log in to the guest")
        user = parsed.user or await sshclient.user_of(guests.GuestAccess(server, machine, key))
        targets.append(sshclient.target(machine, user, proxy))
    return targets
