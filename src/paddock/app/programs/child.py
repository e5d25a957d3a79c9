"""One child process: started on a socket that listens already, asked for its health until it serves, watched, and ended.

starting --(its health service answers)--> serving --(it ends)--> ended
    '------------(it ends, or does not serve in time)---------------^
"""

import asyncio
import contextlib
import hashlib
import logging
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping

import msgspec

from paddock.app.programs.folder import ChildFolder
from paddock.app.programs.launch import ChildLaunch, argv
from paddock.app.programs.relay import LogRelay
from paddock.base.errors import Terminal
from paddock.contract import tls
from paddock.contract.client import ProviderClient, RemoteSettings
from paddock.contract.errors import ProviderError
from paddock.contract.pool import PoolTarget
from paddock.contract.tls import TlsMaterial
from paddock.engine.machine import limits
from paddock.engine.machine.process import Process

_LOG = logging.getLogger(__name__)
_LOOPBACK = "127.0.0.1"
_READY_SECONDS, _LOOK_SECONDS, _GRACE_SECONDS = 60.0, 0.05, 10.0


class ChildFailed(Terminal):
    """A child that cannot be started."""


class ChildSecurity(msgspec.Struct, frozen=True):
    """The certificates of both sides; None: plain text."""

    server_name: str
    provider: TlsMaterial | None
    manager: TlsMaterial | None
    verify: bool = True


class ProviderChild:
    """A child of a Provider. `changed` is called when it serves and when it has ended."""

    def __init__(self, name: str, folder: ChildFolder, security: ChildSecurity, changed: Callable[[], None]) -> None:
        self.name = name
        self.serving = False
        self.ended = False
        self.problem = ""
        self.port = 0
        self.pid = 0
        self.security = security
        self._folder = folder
        self._changed = changed
        self._process: Process | None = None
        self._input = -1
        self._tasks: list[asyncio.Task[None]] = []
        self._ending: asyncio.Task[None] | None = None
        self._gone = asyncio.Event()

    def start(self, launch: Callable[[int], ChildLaunch], secrets: Mapping[str, bytes], bounds: Mapping[str, str]) -> None:
        """Start the process; `launch` gets the descriptor of its socket. Raises `ChildFailed`."""
        self._folder.write(self.security.provider, secrets)
        listening = socket.create_server((_LOOPBACK, 0), backlog=128)
        given, self._input = os.pipe()
        log, written = os.pipe()
        try:
            self.port = listening.getsockname()[1]
            wanted = launch(listening.fileno())
            process = subprocess.Popen(
                argv(wanted),
                stdin=given,
                stdout=written,
                stderr=written,
                pass_fds=(listening.fileno(),),
                env=dict(wanted.environment),
                cwd="/",
                umask=0o007,
            )
        except OSError as error:
            os.close(log)
            os.close(self._input)
            self._folder.remove()
            raise ChildFailed(f"cannot start the program of Provider {self.name}", why=error.strerror or str(error)) from error
        finally:
            # The child alone listens: when it is gone, nobody waits for its answer.
            listening.close()
            os.close(given)
            os.close(written)
        # `Process` waits for it; left to itself, subprocess would warn and take the exit status away.
        process.returncode = 0
        self._watch(process.pid, log, secrets, bounds)

    def _watch(self, pid: int, log: int, secrets: Mapping[str, bytes], bounds: Mapping[str, str]) -> None:
        self.pid = pid
        self._process = Process(pid, self._over)
        for each in limits.apply(limits.on_this_host(), self._group, pid, bounds):
            _LOG.warning("limit of a provider not kept", extra={"provider": self.name, "problem": each})
        material = self.security.provider
        private = {**secrets, "tls.key": material.key} if material is not None else dict(secrets)
        self._relay = LogRelay(self.name, private)
        self._tasks = [asyncio.create_task(self._relay.run(log)), asyncio.create_task(self._wait_until_serving())]
        _LOG.info("provider started", extra={"provider": self.name, "pid": pid, "port": self.port})

    @property
    def _group(self) -> str:
        # Another server's children have the same numbers. After a crash, the names are used again.
        server = hashlib.sha256(os.fsencode(self._folder.path.parent)).hexdigest()[:8]
        return f"provider-{server}-{self._folder.path.name}"

    async def _wait_until_serving(self) -> None:
        security = self.security
        context = tls.client_context(security.manager, verify=security.verify) if security.manager is not None else None
        target = PoolTarget(_LOOPBACK, self.port, context, security.server_name if context is not None else "")
        client = ProviderClient(target, RemoteSettings(self.name, qps=None))
        try:
            async with asyncio.timeout(_READY_SECONDS):
                while not self.serving:
                    with contextlib.suppress(ProviderError):
                        self.serving = await client.is_serving(5.0)
                    await asyncio.sleep(0 if self.serving else _LOOK_SECONDS)
        except TimeoutError:
            self.problem = f"it does not serve within {_READY_SECONDS:g} s"
            self.kill()
            return
        finally:
            await client.close()
        self._changed()

    def kill(self) -> None:
        """End the process at once."""
        if self._process is not None:
            self._process.kill()

    async def stop(self) -> None:
        """End the process: it may finish its calls, but not for long."""
        if not self.ended and self._process is not None:
            self._process.signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_GRACE_SECONDS):
                    await self._gone.wait()
            if not self.ended:
                self.kill()
                await self._gone.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _over(self, status: int | None) -> None:
        self.serving = False
        self._ending = asyncio.create_task(self._end(status))

    async def _end(self, status: int | None) -> None:
        relay, waiting = self._tasks
        waiting.cancel()
        # What the child wrote last is still on its way.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await asyncio.gather(relay, return_exceptions=True)
        how = f"signal {signal.Signals(-status).name}" if status is not None and status < 0 else f"exit status {status}"
        last = f": {self._relay.last}" if self._relay.last else ""
        self.problem = self.problem or f"the program of the Provider ended with {how}{last}"
        self.ended = True
        os.close(self._input)
        self._folder.remove()
        limits.remove(limits.on_this_host(), self._group)
        self._gone.set()
        _LOG.info("provider ended", extra={"provider": self.name, "pid": self.pid, "how": how})
        self._changed()
