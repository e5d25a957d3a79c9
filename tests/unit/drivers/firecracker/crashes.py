"""Ends a driver at a chosen step of its work, as a loss of power to its process would.

The driver runs in a fork. Each thing that it does to a file, a socket or a process is a step; at the chosen one the fork is killed, before
the step is done.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from paddock_drivers.firecracker.driver import FirecrackerDriver
from tests.unit.drivers.firecracker.conftest import Lab

_STEPS = {
    *("os.rename", "os.link", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.chmod", "shutil.rmtree"),
    *("subprocess.Popen", "socket.connect", "fcntl.flock", "fcntl.ioctl"),
}
_WRITES = os.O_WRONLY | os.O_RDWR
Script = Callable[[FirecrackerDriver], Awaitable[Any]]


def run_until(lab: Lab, script: Script, step: int) -> bool:
    """Run a script in a driver of its own that ends at a step; returns whether it got that far."""
    child = os.fork()
    if not child:
        code = 1
        try:
            _die_at(step)
            asyncio.run(_run(lab, script))
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


async def _run(lab: Lab, script: Script) -> None:
    async with lab.driver() as driver:
        await script(driver)


def _die_at(step: int) -> None:
    count = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        wrote = event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES
        if event in _STEPS or wrote:
            count += 1
            if count == step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
