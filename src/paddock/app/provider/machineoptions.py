"""The options that say which machines `paddock provider conformance` and `bench` make."""

import argparse
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from paddock.base import duration
from paddock.base.errors import Terminal
from paddock.cli import arguments
from paddock.contract.conformance.settings import ConformanceSettings
from paddock.contract.payloads import ImagePayload, NetworkPayload


class BadImageSpec(Terminal):
    """A file that holds no spec of a VMImage."""


def add_options(options: arguments.Parser) -> None:
    group = options.add_argument_group("machines")
    group.add_argument("--template", metavar="NAME", default="", help="Template to create machines from (default: conformance)")
    group.add_argument("--image-path", metavar="PATH", default="", help="Image file of the provider to create machines from instead")
    group.add_argument("--network", metavar="NAME", action="append", default=[], help="Network of the machines; repeatable (default: none)")
    group.add_argument("--cpu", metavar="N", type=_number, default=1, help="CPUs of a machine (default: 1)")
    group.add_argument("--memory", metavar="MIB", type=_number, default=512, help="Memory of a machine (default: 512)")
    group.add_argument("--disk", metavar="GIB", type=_number, default=0, help="First disk of a machine (default: as large as the image)")
    group.add_argument("--task-timeout", metavar="DURATION", type=_seconds, default=600.0, help="Longest task (default: 10m)")


def add_storage(options: arguments.Parser) -> None:
    """Add the options for images and transfers."""
    group = options.add_argument_group("images, transfers and commands (their cases are skipped without these)")
    group.add_argument("--prepare", metavar="FILE", type=Path, help="VMImage, or its spec, to prepare (YAML or JSON)")
    group.add_argument("--transfer-url", metavar="URL", default="", help="Staging folder, such as pvc://CLAIM/FOLDER")
    group.add_argument("--transfer-dir", metavar="DIR", default="", help="Where that folder is mounted here, to check the files' SHA-256")
    group.add_argument("--exec", metavar="COMMAND", default="", help="Command that a guest can run and that succeeds, such as 'uname -a'")


def settings(parsed: argparse.Namespace) -> ConformanceSettings:
    """The settings that the options give."""
    image = (
        ImagePayload(path=parsed.image_path, format="qcow2")
        if parsed.image_path
        else ImagePayload(template_name=parsed.template or "conformance")
    )
    options: Mapping[str, Any] = vars(parsed)
    prepare = options.get("prepare")
    return ConformanceSettings(
        image=image,
        cpu=parsed.cpu,
        memory_mib=parsed.memory,
        disk_gib=parsed.disk,
        networks=tuple(NetworkPayload(name=name, network_name=name, bridge=name) for name in parsed.network),
        prepare=_image_spec(prepare) if prepare is not None else None,
        transfer_url=options.get("transfer_url") or "",
        transfer_directory=options.get("transfer_dir") or "",
        command=tuple(shlex.split(options.get("exec") or "")),
        task_seconds=parsed.task_timeout,
    )


def _image_spec(path: Path) -> dict[str, Any]:
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadImageSpec(f"cannot read {path}", why=error.strerror or str(error)) from error
    except (yaml.YAMLError, ValueError) as error:
        raise BadImageSpec(f"{path} is neither YAML nor JSON", why=" ".join(str(error).split())) from error
    found = found.get("spec", found) if isinstance(found, dict) else None
    if not isinstance(found, dict) or not isinstance(found.get("source"), dict):
        raise BadImageSpec(f"{path} holds no VMImage", fix="give an object with `source`")
    plain: dict[str, Any] = json.loads(json.dumps(found, default=str))
    return plain


def _number(word: str) -> int:
    if not (word.isascii() and word.isdecimal() and int(word) <= 1 << 30):
        raise argparse.ArgumentTypeError(f"{word!r} is no number")
    return int(word)


def _seconds(word: str) -> float:
    try:
        found = duration.parse(word) / duration.SECOND
    except duration.NotADuration as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if found <= 0:
        raise argparse.ArgumentTypeError(f"{word!r} takes no time")
    return found
