"""The session with a vCenter: logged in when it is first needed, shared by all calls, carried out in threads.

pyVmomi blocks, so everything that talks to vSphere runs in a thread:

    await session.run(lambda: machines.create(request))

The connection is for such threads alone.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from typing import Any, TypeVar

from pyVmomi import vim, vmodl
from pyVmomi.VmomiSupport import IsChildVersion

from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.vsphere import credentials, failures, stub
from paddock_drivers.vsphere.settings import VSphereSettings

T = TypeVar("T")
_INSTANCE = "ServiceInstance"


class VSphereConnection:
    """A logged-in connection, for threads. Each member connects when it has to."""

    def __init__(self, settings: VSphereSettings, folder: Path) -> None:
        self.settings = settings
        self._folder = folder
        self._lock = threading.Lock()
        self._stub: stub.RenewingStub | None = None
        self._content: vim.ServiceInstanceContent | None = None
        # a pair that was refused, by its sum, and until when it is not tried again
        self._refused: tuple[str, float] = ("", 0.0)

    @property
    def folder(self) -> Path:
        """The folder with the files of the credentials."""
        return self._folder

    @property
    def content(self) -> vim.ServiceInstanceContent:
        """The content of the service."""
        return self._opened()[1]

    @property
    def adapter(self) -> stub.RenewingStub:
        """The stub that objects are made with: `vim.VirtualMachine("vm-7", connection.adapter)`."""
        return self._opened()[0]

    @property
    def is_vcenter(self) -> bool:
        """Return whether it is a vCenter; an ESXi host lacks clones, templates and folders."""
        return str(self.content.about.apiType) == "VirtualCenter"

    def speaks(self, kind: Any, member: str = "") -> bool:
        """Return whether the endpoint's version of the API has a type, or a member of one. pyVmomi leaves out what it has not."""
        version = kind._GetPropertyInfo(member).version if member else kind._version
        return bool(IsChildVersion(self.adapter.version, version))

    @property
    def cookie(self) -> str:
        """The value of the Cookie header that uploads and downloads carry."""
        return str(self.adapter.cookie).split(";", 1)[0]

    def _opened(self) -> tuple[stub.RenewingStub, vim.ServiceInstanceContent]:
        with self._lock:
            if self._stub is None or self._content is None:
                authority = credentials.authority(self._folder)
                context = stub.trust(self.settings, str(authority) if authority is not None else None)
                made = stub.RenewingStub(self.settings, stub.negotiated(self.settings, context), context, self._renew)
                instance = vim.ServiceInstance(_INSTANCE, made)
                content = instance.RetrieveContent()
                self._enter(made, content)
                self._stub, self._content = made, content
            return self._stub, self._content

    def _renew(self, seen: int) -> None:
        """Log in again, unless another thread did since the session was seen."""
        with self._lock:
            if self._stub is not None and self._content is not None and self._stub.generation == seen:
                self._enter(self._stub, self._content)

    def _enter(self, made: stub.RenewingStub, content: vim.ServiceInstanceContent) -> None:
        """Log in with what the files say now. A pair that was refused waits, so that the account is not locked."""
        pair = credentials.login(self._folder)
        digest, until = self._refused
        left = until - time.monotonic()
        if pair.digest == digest and left > 0:
            raise _refusal(left)
        try:
            made.login(lambda: content.sessionManager.Login(pair.username, pair.password, None))
        except vim.fault.InvalidLogin as error:
            self._refused = (pair.digest, time.monotonic() + self.settings.refusal_seconds)
            raise _refusal(self.settings.refusal_seconds) from error
        self._refused = ("", 0.0)

    def close(self) -> None:
        """Log out, as far as the endpoint can be reached."""
        with self._lock:
            if self._stub is None or self._content is None:
                return
            # Nothing is renewed on the way out.
            with contextlib.suppress(vmodl.MethodFault, OSError, HTTPException):
                self._stub.leave(self._content.sessionManager.Logout)
            self._stub.DropConnections()
            self._stub = self._content = None


def _refusal(seconds: float) -> ProviderError:
    what = "vSphere refuses the name and password of the credentials"
    fix = "correct them in the Secret of the Provider"
    return ProviderError(ErrorKind.UNAUTHORIZED, what, fix=fix, retry_after=seconds)


class VSphereSession:
    """Runs work with the connection in threads, and closes it at the end."""

    def __init__(self, settings: VSphereSettings, folder: Path) -> None:
        self.connection = VSphereConnection(settings, folder)
        self._threads = ThreadPoolExecutor(settings.threads, thread_name_prefix="vsphere")

    async def run(self, work: Callable[[], T], what: str = "") -> T:
        """Carry out work in a thread; its faults become errors of the provider."""

        def carried_out() -> T:
            with failures.mapped(*([what] if what else [])):
                return work()

        return await asyncio.get_running_loop().run_in_executor(self._threads, carried_out)

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._threads, self.connection.close)
        self._threads.shutdown(wait=False, cancel_futures=True)
