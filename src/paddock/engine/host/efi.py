"""EFI firmware on this host, by the descriptors that packages of firmware bring along (QEMU's docs/interop/firmware.json).

Their order is their priority: a number leads each name, and a file in /etc takes the place of one of the same name in /usr.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from paddock.engine.machine.argv.view import EfiFiles

FOLDERS = (Path("/usr/share/qemu/firmware"), Path("/etc/qemu/firmware"))
_TARGETS = {"amd64": ("x86_64", "q35"), "arm64": ("aarch64", "virt")}
# Where the files are when nobody describes them.
_USUAL = {
    "amd64": (
        ("/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_VARS_4M.fd"),
        ("/usr/share/OVMF/OVMF_CODE.fd", "/usr/share/OVMF/OVMF_VARS.fd"),
        ("/usr/share/edk2/ovmf/OVMF_CODE.fd", "/usr/share/edk2/ovmf/OVMF_VARS.fd"),
    ),
    "arm64": (("/usr/share/AAVMF/AAVMF_CODE.fd", "/usr/share/AAVMF/AAVMF_VARS.fd"),),
}
_USUAL_SECURE = {
    "amd64": (
        ("/usr/share/OVMF/OVMF_CODE_4M.ms.fd", "/usr/share/OVMF/OVMF_VARS_4M.ms.fd"),
        ("/usr/share/edk2/ovmf/OVMF_CODE.secboot.fd", "/usr/share/edk2/ovmf/OVMF_VARS.secboot.fd"),
    ),
    "arm64": (),
}


class EfiFirmware(Struct, frozen=True):
    """The files of one architecture; None: there are none."""

    plain: EfiFiles | None = None
    secure: EfiFiles | None = None


def find(architecture: str, folders: Iterable[Path] = FOLDERS) -> EfiFirmware:
    """The firmware for one architecture. Secure firmware is one that comes with enrolled keys: without them it secures nothing."""
    described = [(files, features) for files, features in _described(architecture, folders)]
    plain = [files for files, features in described if not features & {"secure-boot", "requires-smm", "amd-sev-es", "amd-sev-snp"}]
    secure = [files for files, features in described if features >= {"secure-boot", "enrolled-keys"}]
    usual, usual_secure = _usual(_USUAL[architecture]), _usual(_USUAL_SECURE[architecture])
    return EfiFirmware(plain=next(iter((*plain, *usual)), None), secure=next(iter((*secure, *usual_secure)), None))


def _usual(pairs: Iterable[tuple[str, str]]) -> Iterator[EfiFiles]:
    for code, variables in pairs:
        if Path(code).is_file() and Path(variables).is_file():
            yield EfiFiles(Path(code), Path(variables))


def _described(architecture: str, folders: Iterable[Path]) -> Iterator[tuple[EfiFiles, frozenset[str]]]:
    descriptors = {path.name: path for folder in folders if folder.is_dir() for path in folder.glob("*.json")}
    for name in sorted(descriptors):
        try:
            document = json.loads(descriptors[name].read_bytes())
            found = _read(document, *_TARGETS[architecture])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            # Somebody else's file: what cannot be read describes nothing.
            continue
        if found is not None and found[0].code.is_file() and found[0].variables.is_file():
            yield found


def _read(document: Mapping[str, Any], architecture: str, board: str) -> tuple[EfiFiles, frozenset[str]] | None:
    mapping = document["mapping"]
    executable, template = mapping.get("executable", {}), mapping.get("nvram-template", {})
    suits = any(
        target["architecture"] == architecture and any(board in machine for machine in target["machines"]) for target in document["targets"]
    )
    if not suits or "uefi" not in document["interface-types"] or mapping["device"] != "flash":
        return None
    if (executable.get("format"), template.get("format")) != ("raw", "raw"):
        return None
    return EfiFiles(Path(executable["filename"]), Path(template["filename"])), frozenset(document["features"])
