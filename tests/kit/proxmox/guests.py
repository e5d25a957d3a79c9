"""The guest agent and the console: what a script of `Guest` answers in place of a system inside."""

import base64
import re
import secrets
from typing import Any

from tests.kit.proxmox import drives, formats, power, schema
from tests.kit.proxmox.context import Context, Routes
from tests.kit.proxmox.errors import failed
from tests.kit.proxmox.inventory import Machine

routes = Routes()
VM = "/nodes/{node}/qemu/{vmid}"
PATH = f"{VM}/agent"
_COMMANDS = (
    *("fsfreeze-freeze", "fsfreeze-status", "fsfreeze-thaw", "fstrim", "get-fsinfo", "get-host-name", "get-memory-block-info"),
    *("get-memory-blocks", "get-osinfo", "get-time", "get-timezone", "get-users", "get-vcpus", "info", "network-get-interfaces"),
    *("ping", "shutdown", "suspend-disk", "suspend-hybrid", "suspend-ram"),
)
_MOST_READ = 16 << 20


def agent(context: Context) -> Machine:
    """Return a machine whose agent answers."""
    machine = context.machine()
    setting = machine.conf.get("agent")
    if setting is None:
        raise failed("No QEMU guest agent configured")
    if machine.process is None:
        raise failed(f"VM {machine.vmid} is not running")
    # The channel to the agent is a device: it is there only if QEMU was started with it.
    device = formats.parse_boolean(machine.process.conf.get("agent", "0").partition(",")[0].removeprefix("enabled=")) == "1"
    ready = context.cluster.clock() - machine.process.started >= machine.guest.agent_seconds
    if not (device and machine.guest.has_agent and ready and machine.process.status == "running"):
        raise failed("QEMU guest agent is not running")
    return machine


@routes.on(f"GET {PATH}")
def index(context: Context) -> Any:
    return [{"name": name} for name in sorted((*_COMMANDS, "exec", "exec-status", "file-read", "file-write", "set-user-password"))]


@routes.on(f"POST {PATH}", *(f"{method} {PATH}/{name}" for name in _COMMANDS for method in ("GET", "POST")))
def command(context: Context) -> Any:
    machine = agent(context)
    name = context.text("command") or context.call.path.rpartition("/")[2]
    return {"result": _result(context, machine, name)}


def _result(context: Context, machine: Machine, name: str) -> Any:
    if name == "network-get-interfaces":
        return interfaces(machine)
    if name == "get-host-name":
        return {"host-name": machine.conf.get("name", machine.guest.hostname)}
    if name == "get-osinfo":
        return {"id": "debian", "name": "Debian GNU/Linux", "version": "13 (trixie)", "version-id": "13", "machine": "x86_64"}
    if name == "info":
        return {"version": "10.0.2", "supported_commands": [{"name": f"guest-{each}", "enabled": True} for each in _COMMANDS]}
    if name == "get-time":
        return int(context.cluster.clock() * 1e9)
    if name == "shutdown":
        power.stop_now(context, machine)
    answers: dict[str, Any] = {"fsfreeze-status": "thawed", "fsfreeze-freeze": 1, "fsfreeze-thaw": 1, "get-users": [], "get-fsinfo": []}
    return answers.get(name, {})


def interfaces(machine: Machine) -> list[dict[str, Any]]:
    """Return the interfaces as the agent of a Linux guest does."""
    conf = machine.process.conf if machine.process else {}
    found = [_interface("lo", "00:00:00:00:00:00", ["127.0.0.1/8", "::1/128"])]
    for key in sorted(conf):
        if re.fullmatch(r"net\d+", key):
            number = int(key[3:])
            mac = drives.parse_net(conf[key]).get("macaddr", "").lower()
            given = machine.guest.addresses.get(number)
            found.append(_interface(f"eth{number}", mac, addresses(machine, number) if given is None else given))
    return found


def addresses(machine: Machine, number: int) -> list[str]:
    """Return the addresses of cloud-init, or those that DHCP would give."""
    config = schema.check_properties(formats.NAMED["pve-qm-ipconfig"], machine.conf.get(f"ipconfig{number}", "ip=dhcp"))
    found = [value for family in ("ip", "ip6") if "/" in (value := config.get(family, ""))]
    if config.get("ip") == "dhcp":
        found.append(f"198.51.{100 + number}.{machine.vmid % 250 + 1}/24")
    return [*found, f"fe80::{machine.vmid:x}:{number:x}/64"]


def _interface(name: str, mac: str, given: list[str]) -> dict[str, Any]:
    listed = [
        {
            "ip-address": each.partition("/")[0],
            "ip-address-type": "ipv6" if ":" in each else "ipv4",
            "prefix": int(each.partition("/")[2] or 32),
        }
        for each in given
    ]
    return {"name": name, "hardware-address": mac, "ip-addresses": listed, "statistics": {"rx-bytes": 0, "tx-bytes": 0}}


@routes.on(f"POST {PATH}/exec")
def execute(context: Context) -> Any:
    machine = agent(context)
    given = context.values.get("command", [])
    words = given if isinstance(given, list) else [str(given)]
    if not words and "input-data" not in context.values:
        raise failed("command or input-data (or both) required")
    try:
        code, output, errors = machine.guest.commands(words, context.text("input-data"))
    except FileNotFoundError:
        what = f"Failed to execute child process “{words[0]}” (No such file or directory)"
        raise failed(f"Agent error: Guest agent command failed, error was '{what}'") from None
    pid = 1000 + len(machine.guest.executed)
    machine.guest.executed[pid] = (code, output, errors)
    return {"pid": pid}


@routes.on(f"GET {PATH}/exec-status")
def executed(context: Context) -> Any:
    machine, pid = agent(context), context.number("pid", 0)
    if pid not in machine.guest.executed:
        raise failed(f"Agent error: PID {pid} does not exist")
    code, output, errors = machine.guest.executed[pid]
    found: dict[str, Any] = {"exited": 1, "exitcode": code}
    return found | {key: text for key, text in (("out-data", output), ("err-data", errors)) if text}


@routes.on(f"GET {PATH}/file-read")
def read_file(context: Context) -> Any:
    machine, name = agent(context), context.text("file")
    if name not in machine.guest.files:
        raise failed(f"Agent error: failed to open file '{name}': No such file or directory")
    start, count = context.number("offset", 0), context.number("count", _MOST_READ)
    data = machine.guest.files[name][start : start + count]
    text = data.decode("latin-1") if context.flag("decode", default=True) else base64.b64encode(data).decode()
    found: dict[str, Any] = {"content": text, "bytes-read": len(data)}
    return found | ({"truncated": 1} if start + count < len(machine.guest.files[name]) else {})


@routes.on(f"POST {PATH}/file-write")
def write_file(context: Context) -> Any:
    machine = agent(context)
    text = context.text("content")
    machine.guest.files[context.text("file")] = text.encode() if context.flag("encode", default=True) else base64.b64decode(text)


@routes.on(f"POST {PATH}/set-user-password")
def set_password(context: Context) -> Any:
    agent(context)
    return {"result": {}}


@routes.on(f"POST {VM}/vncproxy")
def vnc(context: Context) -> Any:
    machine = context.machine()
    password, port = secrets.token_hex(4), 5900 + machine.vmid % 100
    upid = context.worker("vncproxy", machine.vmid, lambda task: None, seconds=10.0)
    ticket = f"{password}:PVEVNC:{int(context.cluster.clock()):08X}::{secrets.token_urlsafe(24)}"
    found = {"user": context.caller.name, "ticket": ticket, "cert": "", "port": str(port), "upid": upid}
    return found | ({"password": password} if context.flag("generate-password") else {})
