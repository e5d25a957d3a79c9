"""The means of the host: a program of Firecracker, and a KVM that carries out a guest's instructions.

A module of KVM may answer every question and still interpret instructions in software, on which no kernel comes up. So a loop of machine
code is timed in a process of its own.
"""

import asyncio
import contextlib
import json
import os
import re
import sys
from collections.abc import Awaitable, Callable

from paddock.base import kvmprobe

_PROBE_SECONDS, _VERSION_SECONDS, _ATTEMPTS = 5.0, 10.0, 3
_AGAIN_SECONDS = 600.0
_TROUBLE = {
    "absent": "this host has no KVM",
    "forbidden": "KVM may not be used by the provider",
    "broken": "KVM does not work on this host",
    "emulated": "KVM on this host interprets instructions in software, and kernels die on it",
}
_VERSION = re.compile(rb"[Ff]irecracker v?(\d+)\.(\d+)\.?(\d*)")
LEAST = (1, 5)
# Returns why KVM cannot be used; empty when it can.
KvmCheck = Callable[[], Awaitable[str]]


async def kvm_problem() -> str:
    """Return why KVM cannot be used here; empty when it can. On a busy host a real one may seem slow, so it gets another chance."""
    problem = ""
    for _ in range(_ATTEMPTS):
        problem = await _probed()
        if problem != _TROUBLE["emulated"]:
            return problem
    return problem


async def _probed() -> str:
    code, out = await _run((sys.executable, "-I", "-S", kvmprobe.__file__), _PROBE_SECONDS)
    try:
        found = json.loads(out)
        state, detail = str(found["state"]), str(found["detail"])
    except (ValueError, KeyError, TypeError):
        return f"{_TROUBLE['broken']}: the test ended with status {code}"
    if state == "real":
        return ""
    if state == "emulated":
        # Its speed is another one each time, and the condition shall not change with it.
        return _TROUBLE["emulated"]
    return f"{_TROUBLE.get(state, _TROUBLE['broken'])}{f': {detail}' if detail else ''}"


class HypervisorFacts:
    """The facts of this host, found when they are first wanted. Those that may change are found again."""

    def __init__(self, program: str, kvm: KvmCheck = kvm_problem) -> None:
        self._program = program
        self._kvm = kvm
        self._versions: dict[tuple[str, int, int], tuple[int, ...]] = {}
        self._kvm_known: tuple[tuple[object, ...], str] | None = None
        self._kvm_due = 0.0
        self._lock = asyncio.Lock()

    async def kvm(self) -> str:
        """Return why KVM cannot be used; empty when it can. Asked anew when the device has changed, and after a while if it cannot."""
        key = _device()
        async with self._lock:
            now = asyncio.get_running_loop().time()
            if self._kvm_known is None or self._kvm_known[0] != key or (self._kvm_known[1] and now >= self._kvm_due):
                self._kvm_known, self._kvm_due = (key, await self._kvm()), now + _AGAIN_SECONDS
            return self._kvm_known[1]

    async def version(self) -> tuple[int, ...]:
        """Return the version of the program; empty when it says none."""
        try:
            found = os.stat(self._program)
        except OSError:
            return ()
        key = (self._program, found.st_size, found.st_mtime_ns)
        if key not in self._versions:
            _, out = await _run((self._program, "--version"), _VERSION_SECONDS)
            match = _VERSION.search(out)
            self._versions = {key: tuple(int(each) for each in match.groups() if each) if match is not None else ()}
        return self._versions[key]

    async def problem(self) -> str:
        """Return why no machine can be started here; empty when one can."""
        if not self._program:
            return "there is no program firecracker in the PATH; install it, or name it in PROVIDER_FIRECRACKER"
        if not os.access(self._program, os.X_OK):
            return "the program of PROVIDER_FIRECRACKER cannot be run"
        version = await self.version()
        if not version:
            return "the program of PROVIDER_FIRECRACKER does not say its version, so it is no Firecracker"
        if version < LEAST:
            return f"Firecracker {'.'.join(map(str, version))} is too old; use {'.'.join(map(str, LEAST))} or newer"
        return await self.kvm()


def _device() -> tuple[object, ...]:
    try:
        found = os.stat("/dev/kvm")
    except OSError:
        return ()
    return (found.st_rdev, found.st_mode, found.st_uid, found.st_gid)


async def _run(argv: tuple[str, ...], seconds: float) -> tuple[int, bytes]:
    try:
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
    except OSError as error:
        return error.errno or 1, b""
    try:
        async with asyncio.timeout(seconds):
            out, _ = await process.communicate()
    except TimeoutError:
        out = b""
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    return await process.wait(), out
