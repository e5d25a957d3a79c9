"""The options of a start that concern machines; `paddock apiserver` has none of them."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from paddock.app.options.settings import MachineSettings
from paddock.base.errors import Terminal
from paddock.cli import arguments
from paddock.cli.arguments import Parser


def add(options: Parser) -> None:
    """Everything that may be said about machines."""
    option = options.add_argument
    words = "how machines are connected (default: routed as root, else user)"
    arguments.add_choice(options, ("--network",), ("auto", "routed", "user"), words, "auto")
    words = (
        "what becomes of Pods and of what is made of Pods: refused with the reason, or stored, though nothing runs them (default: refused)"
    )
    arguments.add_choice(options, ("--workloads",), ("refused", "stored"), words, "refused")
    option("--pod-network", default="", metavar="CIDR", help="addresses of machines (default: one that the host does not use)")
    option("--image-from", action="append", default=[], metavar="HOST", help="what of this very host images may come from")
    option("--registry-mirror", action="append", default=[], metavar="NAME=PLACE", help="what is asked in place of a registry")
    option("--insecure-registry", action="append", default=[], metavar="HOST", help="a registry that is asked without TLS")
    option("--image-archives", action="append", type=Path, default=[], metavar="DIR", help="where oci-archive: files may be")
    option("--image-retention", type=_days, default=7.0, metavar="DAYS", help="how long an unused image is kept (default: 7)")
    option("--pool", action="append", default=[], metavar="NAME=DIR", help="a further place for volumes, for StorageClasses that name it")
    option("--host-disks", action="append", type=Path, default=[], metavar="DIR", help="where the files of hostDisk volumes may be")
    option("--memory-overcommit", type=_ratio, default=1.0, metavar="RATIO", help="guests may be promised so many times the host's memory")


def read(parsed: argparse.Namespace) -> MachineSettings:
    """What they say."""
    mirrors: dict[str, tuple[str, ...]] = {}
    for name, place in _pairs(parsed.registry_mirror, "--registry-mirror=NAME=PLACE"):
        mirrors[name] = (*mirrors.get(name, ()), place)
    return MachineSettings(
        network=parsed.network,
        pod_network=parsed.pod_network,
        image_hosts=tuple(parsed.image_from),
        mirrors=mirrors,
        insecure_registries=tuple(parsed.insecure_registry),
        archives=tuple(each.absolute() for each in parsed.image_archives),
        image_retention=parsed.image_retention,
        pools={name: Path(place).absolute() for name, place in _pairs(parsed.pool, "--pool=NAME=DIR")},
        host_paths=tuple(each.resolve() for each in parsed.host_disks),
        memory_overcommit=parsed.memory_overcommit,
    )


def _pairs(given: Sequence[str], form: str) -> list[tuple[str, str]]:
    found = [each.partition("=") for each in given]
    if any(not name or not value for name, _, value in found):
        raise Terminal("an option needs a name and a value", fix=f"write {form}")
    return [(name, value) for name, _, value in found]


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
