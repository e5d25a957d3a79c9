"""The options of `paddock up` that concern machines and their images; `paddock apiserver` has none of them."""

import argparse
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from paddock.app.options.settings import MachineSettings, ProviderProgramSettings, parse_listen
from paddock.base.errors import Terminal
from paddock.cli import arguments
from paddock.cli.arguments import Parser
from paddock.kubevirt.kinds.gates import RELEASES
from paddock.kubevirt.plan.storage import hostdirectories

# As KubeVirt has it.
MIGRATIONS_PORT = 9185


def add(options: Parser) -> None:
    """Add the options about machines and their images."""
    machines = options.add_argument_group("machines")
    words = "Whether machines run with QEMU, or are simulated for tests of what uses the API (default: real)"
    arguments.add_choice(machines, ("--guests",), ("real", "simulated"), words, "real")
    words = "Nodes that simulated guests seem to run on, 1 to 1000 (default: 1)"
    machines.add_argument("--nodes", type=_nodes, default=1, metavar="N", help=words)
    words = "Release of KubeVirt whose API to serve, for tests of clients: 1.3 to 1.9 (default: that of 1.9, and older versions of kinds)"
    machines.add_argument("--as-kubevirt", dest="kubevirt_release", type=_release, default=0, metavar="RELEASE", help=words)
    words = (
        "How machines are connected: bridged and routed, the same in a network namespace of this user, or with QEMU's user-mode network "
        "(default: routed as root, otherwise rootless, or user where that is not possible)"
    )
    arguments.add_choice(machines, ("--network",), ("auto", "routed", "rootless", "user"), words, "auto")
    words = "Whether to refuse Pods and the kinds made of Pods, or to store them although nothing runs them (default: refused)"
    arguments.add_choice(machines, ("--workloads",), ("refused", "stored"), words, "refused")
    add = machines.add_argument
    words = "Address range of machines, IPv4 or IPv6, or both with a comma (default: ranges that the host does not use)"
    add("--pod-network", default="", metavar="CIDR", help=words)
    words = "Memory that guests may be promised, as a multiple of the host's (default: 1)"
    add("--memory-overcommit", type=_ratio, default=1.0, metavar="RATIO", help=words)
    words = "Additional directory for volumes, for StorageClasses that name the pool; repeatable"
    add("--pool", action="append", default=[], metavar="NAME=DIR", help=words)
    words = "Directory in which hostDisk volumes may have their files; repeatable"
    add("--host-disks", action="append", type=Path, default=[], metavar="DIR", help=words)
    words = "Directory below which machines may share directories of this host (paddock run --mount); repeatable"
    add("--share", action="append", type=Path, default=[], metavar="DIR", help=words)
    words = (
        "Address and port at which other servers hand running machines over; this server then sends and receives them (default: it does "
        "neither; port 9185)"
    )
    add("--migrations", default="", metavar="ADDRESS:PORT", help=words)
    add = options.add_argument_group("images").add_argument
    words = "Host or network of this computer that images may be downloaded from; repeatable"
    add("--image-from", action="append", default=[], metavar="HOST", help=words)
    add("--image-archives", action="append", type=Path, default=[], metavar="DIR", help="Directory of oci-archive: files; repeatable")
    add("--image-retention", type=_days, default=7.0, metavar="DAYS", help="Days to keep an unused image (default: 7)")
    words = "Mirror to ask in place of a registry; repeatable"
    add("--registry-mirror", action="append", default=[], metavar="NAME=PLACE", help=words)
    words = "URL to download from in place of every URL that begins with PREFIX; repeatable"
    add("--image-mirror", action="append", default=[], metavar="PREFIX=URL", help=words)
    add("--insecure-registry", action="append", default=[], metavar="HOST", help="Registry to contact without TLS; repeatable")
    add = options.add_argument_group("providers").add_argument
    words = "Host or network of this computer that VirtRigaud's Providers may name; repeatable"
    add("--provider-from", action="append", default=[], metavar="HOST", help=words)
    words = "Driver that serves Providers of a type in place of the type's own: fake, or MODULE:NAME; repeatable"
    add("--provider-driver", action="append", default=[], metavar="TYPE=DRIVER", help=words)
    words = "Host of buckets or NFS exports that VirtRigaud's migrations may use, as a name or *.suffix; repeatable (default: all)"
    add("--migration-storage-allowed-hosts", action="append", default=[], metavar="HOST", help=words)


def read(parsed: argparse.Namespace) -> MachineSettings:
    """Return the settings that these options make."""
    mirrors: dict[str, tuple[str, ...]] = {}
    for name, place in _pairs(parsed.registry_mirror, "--registry-mirror=NAME=PLACE"):
        mirrors[name] = (*mirrors.get(name, ()), place)
    if parsed.nodes != 1 and parsed.guests != "simulated":
        raise Terminal("--nodes has no effect on real guests", why="they run on this host", fix="add --guests simulated, or leave it out")
    return MachineSettings(
        guests=parsed.guests,
        nodes=parsed.nodes,
        kubevirt_release=parsed.kubevirt_release,
        network=parsed.network,
        pod_network=parsed.pod_network,
        image_hosts=tuple(parsed.image_from),
        mirrors=mirrors,
        url_mirrors=_url_mirrors(parsed.image_mirror),
        insecure_registries=tuple(parsed.insecure_registry),
        archives=tuple(each.absolute() for each in parsed.image_archives),
        image_retention=parsed.image_retention,
        pools={name: Path(place).absolute() for name, place in _pairs(parsed.pool, "--pool=NAME=DIR")},
        host_paths=tuple(each.resolve() for each in parsed.host_disks),
        shares=tuple(map(_shared, parsed.share)),
        memory_overcommit=parsed.memory_overcommit,
        migrations=_migrations(parsed.migrations, parsed.guests),
    )


def _migrations(text: str, guests: str) -> tuple[str, int] | None:
    """Return the address and the port of `--migrations`."""
    if not text:
        return None
    if guests == "simulated":
        raise Terminal("--migrations has no effect on simulated guests", why="nothing runs in them", fix="leave it out")
    host, port = parse_listen(text, MIGRATIONS_PORT)
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise Terminal(f'--migrations has "{host}", which is no IP address', fix="name the address at which others reach it") from None
    if address.is_unspecified:
        why = "others connect to the address, and the memory of guests goes there"
        raise Terminal(f"--migrations has {host}, which is every address", why=why, fix="name the one at which others reach this host")
    if not port:
        fix = f"name a port, such as {MIGRATIONS_PORT}"
        raise Terminal("--migrations needs a port that stays", why="after a restart, other servers ask there after their guests", fix=fix)
    return host, port


def _shared(directory: Path) -> Path:
    """Return a directory to share, free of links."""
    path = directory.expanduser().resolve()
    if not path.is_dir():
        raise Terminal(f"--share has {directory}, which is no directory of this host", fix="make it first, or correct the path")
    if hostdirectories.is_of_system(path):
        raise Terminal(f"--share has {path}, which belongs to the host's system", fix="share a directory below it that holds data")
    return path


def _url_mirrors(given: Sequence[str]) -> dict[str, str]:
    found = dict(_pairs(given, "--image-mirror=PREFIX=URL"))
    for url in (*found, *found.values()):
        if not url.startswith(("http://", "https://")):
            raise Terminal(f'--image-mirror has "{url}", which is no URL of the scheme http or https', fix="write both URLs in full")
    return found


def read_providers(parsed: argparse.Namespace) -> ProviderProgramSettings:
    """Return the settings of Providers that these options make."""
    drivers = dict(_pairs(parsed.provider_driver, "--provider-driver=TYPE=DRIVER"))
    for each, driver in drivers.items():
        from paddock.dialects.virtrigaud.kinds.shared import PROVIDER_TYPES  # noqa: PLC0415 - hardly anybody gives this option
        from paddock_drivers import catalog  # noqa: PLC0415 - as above

        if each not in PROVIDER_TYPES:
            raise Terminal(f'--provider-driver has "{each}", which is no type of a Provider', fix=f"use {', '.join(PROVIDER_TYPES)}")
        catalog.find(driver)
    hosts = tuple(part.strip() for each in parsed.migration_storage_allowed_hosts for part in each.split(",") if part.strip())
    return ProviderProgramSettings(hosts=tuple(parsed.provider_from), drivers=drivers, migration_hosts=hosts)


def _pairs(given: Sequence[str], form: str) -> list[tuple[str, str]]:
    found = [each.partition("=") for each in given]
    if any(not name or not value for name, _, value in found):
        raise Terminal("an option needs a name and a value", fix=f"write {form}")
    return [(name, value) for name, _, value in found]


def _nodes(word: str) -> int:
    if not word.isdecimal() or not 1 <= int(word) <= 1000:
        raise argparse.ArgumentTypeError(f'"{word}" is no number of nodes from 1 to 1000')
    return int(word)


def _release(word: str) -> int:
    major, _, minor = word.removeprefix("v").partition(".")
    if major != "1" or not minor.isdecimal() or int(minor) not in RELEASES:
        raise argparse.ArgumentTypeError(f'"{word}" is no release of KubeVirt from 1.{RELEASES[0]} to 1.{RELEASES[-1]}')
    return int(minor)


def _days(word: str) -> float:
    try:
        found = float(word)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 36500:
        raise argparse.ArgumentTypeError(f'"{word}" is no number of days such as 7')
    return found


def _ratio(word: str) -> float:
    try:
        found = float(word)
    except ValueError:
        found = 0.0
    if not 0.1 <= found <= 100:
        raise argparse.ArgumentTypeError(f'"{word}" is not a ratio such as 1.5')
    return found
