"""The usability of KVM for guests here, by kind of firmware. Detected once for each boot of the host.

First a loop of machine code is timed (`kvmprobe`): a KVM that interprets answers every question and still boots nothing. Only
where KVM is real are firmwares started, because a KVM may also lack a part that just one of them needs, such as SMM.
"""

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field

from paddock.base import kvmprobe
from paddock.base.descriptors import piped
from paddock.engine.host.efi import EfiFirmware
from paddock.engine.host.qemu import Qemu
from paddock.engine.host.subprocesses import run
from paddock.engine.machine.argv.view import EfiFiles

Kind = Literal["bios", "efi", "smm"]
KINDS: tuple[Kind, ...] = ("bios", "efi", "smm")
State = Literal["real", "emulated", "broken", "absent", "forbidden"]

_FORMAT = 1
_PROBE_SECONDS = 5
_BOOT_SECONDS = 20
# What a firmware writes when it has got through and finds nothing to boot.
_MARKS = {"bios": (b"No bootable device", b"Booting from"), "efi": (b"BdsDxe", b"UEFI"), "smm": (b"BdsDxe", b"UEFI")}


class Kvm(Struct, frozen=True):
    """The detected KVM. `works` names the kinds of firmware that boot; `why` has the reason for each of the others."""

    state: State
    detail: str = ""
    mips: float = 0.0
    works: frozenset[Kind] = frozenset()
    why: Mapping[str, str] = field(default_factory=dict)

    def reason(self, kind: Kind) -> str:
        """Return the reason why a guest with this firmware is emulated; "" if it is not."""
        if kind in self.works:
            return ""
        begin = {
            "absent": "this host has no KVM",
            "forbidden": "KVM may not be used",
            "broken": "KVM does not work on this host",
            "emulated": "KVM on this host interprets instructions in software",
            "real": f"KVM on this host cannot run {_NAMES[kind]}",
        }[self.state]
        detail = self.why.get(kind, "") if self.state == "real" else self.detail
        return f"{begin}: {detail}" if detail else begin


_NAMES = {"bios": "BIOS guests", "efi": "EFI guests", "smm": "guests with System Management Mode, which Secure Boot needs"}


async def probe(qemu: Qemu | None, efi: EfiFirmware, cache: Path) -> Kvm:
    """Return the abilities of this host's KVM. Cached in the folder `cache` until the host boots again or QEMU changes."""
    key = [_FORMAT, _boot_id(), _device(), os.geteuid(), *_identity(qemu, efi)]
    file = cache / "kvm.json"
    known = _cached(file, key)
    if known is not None:
        return known
    found = await _measure(qemu, efi)
    _keep(file, key, found)
    return found


async def speed() -> Kvm:
    """The timed loop alone, in a process of its own, since a broken KVM may never come back."""
    program = kvmprobe.__file__
    out, err, code = await run([sys.executable, "-I", "-S", program], b"", _PROBE_SECONDS)
    try:
        answer = json.loads(out)
        return Kvm(state=answer["state"], detail=answer["detail"], mips=answer["mips"])
    except (ValueError, KeyError, TypeError):
        last = err.decode(errors="replace").strip().splitlines()[-1:] or [f"exit status {code}"]
        return Kvm(state="broken", detail=f"the test ended without a result: {last[0]}")


async def _measure(qemu: Qemu | None, efi: EfiFirmware) -> Kvm:
    found = await speed()
    if found.state != "real" or qemu is None:
        return found
    results: dict[Kind, str] = {}
    for kind in KINDS:
        results[kind] = await boots(qemu, efi, kind)
    works = frozenset(kind for kind, trouble in results.items() if not trouble)
    return Kvm("real", found.detail, found.mips, works, {kind: trouble for kind, trouble in results.items() if trouble})


async def boots(qemu: Qemu, efi: EfiFirmware, kind: Kind, accelerator: str = "kvm", seconds: float = _BOOT_SECONDS) -> str:
    """Starts a machine without disks and waits for its firmware to say that it has none. "" is success, else what went wrong."""
    files = {"bios": None, "efi": efi.plain, "smm": efi.secure}[kind]
    if kind == "bios" and qemu.architecture != "amd64":
        return "this architecture has no BIOS"
    if kind == "smm" and qemu.architecture != "amd64":
        return "this architecture has no System Management Mode"
    if kind != "bios" and files is None:
        return "the firmware is not installed"
    with tempfile.TemporaryDirectory(prefix="paddock-kvm-") as folder:
        argv = _argv(qemu, files, Path(folder), smm=kind == "smm", accelerator=accelerator)
        return await _watch(argv, _MARKS[kind], seconds)


def _argv(qemu: Qemu, files: EfiFiles | None, folder: Path, *, smm: bool, accelerator: str) -> list[str]:
    board = f"q35,smm={'on' if smm else 'off'}" if qemu.architecture == "amd64" else "virt"
    argv = [str(qemu.path), "-nodefaults", "-no-user-config", "-display", "none", "-m", "128", "-no-reboot"]
    argv += ["-accel", accelerator, "-cpu", "host" if accelerator == "kvm" else "max"]
    argv += ["-chardev", "stdio,id=out,mux=on,signal=off", "-serial", "chardev:out"]
    if qemu.architecture == "amd64":
        # SeaBIOS writes its log there.
        argv += ["-device", "isa-debugcon,iobase=0x402,chardev=out"]
    if files is not None:
        variables = folder / "vars.fd"
        variables.write_bytes(files.variables.read_bytes())
        for name, path, readonly in (("code", files.code, True), ("vars", variables, False)):
            file = {"driver": "file", "filename": str(path)}
            argv += ["-blockdev", json.dumps({"driver": "raw", "node-name": name, "read-only": readonly, "file": file})]
        board += ",pflash0=code,pflash1=vars"
    if smm:
        argv += ["-global", "driver=cfi.pflash01,property=secure,value=on", "-global", "ICH9-LPC.disable_s3=1"]
    return [*argv, "-machine", board]


async def _watch(argv: Sequence[str], marks: tuple[bytes, ...], seconds: float) -> str:
    streams = {"stdin": asyncio.subprocess.DEVNULL, "stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.STDOUT}
    process = await asyncio.create_subprocess_exec(*argv, **streams)  # type: ignore[arg-type]
    output, seen = piped(process.stdout), b""
    try:
        async with asyncio.timeout(seconds):
            while chunk := await output.read(4096):
                seen = (seen + chunk)[-65536:]
                if any(mark in seen for mark in marks):
                    return ""
    except TimeoutError:
        return f"the firmware did not finish within {seconds:g} seconds"
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    text = "".join(character if character.isprintable() else " " for character in seen[-400:].decode(errors="replace"))
    return f"QEMU ended: {' '.join(text.split())}" if text.strip() else "QEMU ended without a word"


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _device() -> list[int]:
    """Return the identity and the rights of /dev/kvm. They may change while the host runs; then everything is detected again."""
    try:
        found = os.stat("/dev/kvm")
    except OSError:
        return []
    return [found.st_rdev, found.st_mode, found.st_uid, found.st_gid, int(os.access("/dev/kvm", os.R_OK | os.W_OK))]


def _identity(qemu: Qemu | None, efi: EfiFirmware) -> list[Any]:
    paths = [] if qemu is None else [qemu.path]
    paths += [files.code for files in (efi.plain, efi.secure) if files is not None]
    return [[str(path), path.stat().st_size, path.stat().st_mtime_ns] for path in paths]


def _cached(file: Path, key: list[Any]) -> Kvm | None:
    try:
        document = json.loads(file.read_bytes())
        if document["key"] != key:
            return None
        found = document["found"]
        return Kvm(found["state"], found["detail"], found["mips"], frozenset(found["works"]), dict(found["why"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _keep(file: Path, key: list[Any], kvm: Kvm) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(f".{os.getpid()}.new")
    document = {"state": kvm.state, "detail": kvm.detail, "mips": kvm.mips, "works": sorted(kvm.works), "why": dict(kvm.why)}
    new.write_text(json.dumps({"key": key, "found": document}))
    new.replace(file)
