"""The connection to a libvirtd: calls of libvirt in threads, one event loop of libvirt for the process, another connection when one ends.

    async with LibvirtConnection(settings) as connection:
        names = await connection.run(lambda conn: [each.name() for each in conn.listAllDomains()])

`run` raises `ProviderError` for every error of libvirt. A function that `run` calls is in a thread: it may use its virConnect and what
that gives, and nothing of the event loop's. Credentials are read when a connection is opened; other ones close it.
"""

import asyncio
import contextlib
import hashlib
import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import libvirt

from paddock.base import reasons
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.libvirt import failures
from paddock_drivers.libvirt import settings as naming
from paddock_drivers.libvirt.events import DomainEvents
from paddock_drivers.libvirt.settings import LibvirtDriverSettings

_LOG = logging.getLogger(__name__)
_KEEPALIVES = 4
# How long a failure to open answers for the calls that come meanwhile, and how often the credentials are compared.
_REFUSED_SECONDS, _COMPARED_SECONDS = 1.0, 2.0
# libvirt has one number for all that ends a login.
_OTHER_KEY = "HOST KEY VERIFICATION FAILED"
# The words of SSH libraries for a key or password that the host does not take, under the number of any other trouble.
_DENIED = ("failed to authenticate", "Access denied")
_LARGEST_CREDENTIAL = 64 << 10

# libvirt-python has no types: a virConnect.
Conn = Any
P = ParamSpec("P")
R = TypeVar("R")


class LibvirtConnection:
    """A connection that is opened when it is wanted, and again when it has ended."""

    def __init__(self, settings: LibvirtDriverSettings) -> None:
        self.settings = settings
        self.events = DomainEvents()
        self._pool = ThreadPoolExecutor(settings.workers, thread_name_prefix="libvirt")
        self._lock = asyncio.Lock()
        self._conn: Conn = None
        self._opened_with = ""
        self._compared = 0.0
        self._refusal: ProviderError | None = None
        self._refused = 0.0
        self._opening: threading.Thread | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        conn, self._conn = self._conn, None
        if conn is not None:
            await asyncio.get_running_loop().run_in_executor(self._pool, self._close, conn)
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def run(self, function: Callable[Concatenate[Conn, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a function in a thread, with a virConnect that is open. Raises `ProviderError`."""
        conn = await self._connected()
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._pool, lambda: function(conn, *args, **kwargs))
        except libvirt.libvirtError as error:
            if failures.is_lost(error) and not await loop.run_in_executor(self._pool, _is_alive, conn):
                self._drop(conn)
                raise failures.lost(error) from error
            raise failures.of(error) from error

    async def _connected(self) -> Conn:
        async with self._lock:
            now = time.monotonic()
            if self._conn is not None and now - self._compared >= _COMPARED_SECONDS:
                await self._compare(now)
            if self._conn is None:
                await self._open(now)
            return self._conn

    async def _compare(self, now: float) -> None:
        """Close a connection whose credentials are others by now, or which ended while nobody called."""
        self._compared = now
        loop, conn = asyncio.get_running_loop(), self._conn
        files = await loop.run_in_executor(None, credential_files, self.settings)
        if _digest(files) != self._opened_with:
            _LOG.info("libvirt credentials changed")
            self._drop(conn)
        elif not await loop.run_in_executor(self._pool, _is_alive, conn):
            self._drop(conn)

    async def _open(self, now: float) -> None:
        if self._refusal is not None and now - self._refused < _REFUSED_SECONDS:
            raise self._refusal
        try:
            files = await asyncio.get_running_loop().run_in_executor(None, credential_files, self.settings)
            self._conn = await self._opened(naming.uri(self.settings, files), files)
        except ProviderError as error:
            self._refusal, self._refused = error, time.monotonic()
            raise
        self._refusal, self._opened_with, self._compared = None, _digest(files), time.monotonic()
        _LOG.info("libvirt connected")

    async def _opened(self, uri: str, files: Mapping[str, bytes]) -> Conn:
        """Open in a thread of its own: a host that swallows packets holds it for minutes, and no other call's thread."""
        if self._opening is not None and self._opening.is_alive():
            raise ProviderError(ErrorKind.UNAVAILABLE, "libvirt cannot be reached", why="the last attempt has no answer yet")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Conn] = loop.create_future()
        settle = _Settlement(loop, done)

        def work() -> None:
            try:
                conn = _connect(uri, files, self.settings.silence_seconds)
                self.events.attach(conn, loop)
            except libvirt.libvirtError as error:
                settle.fail(_refusal(error))
            else:
                settle.succeed(conn)

        self._opening = threading.Thread(target=work, name="libvirt-open", daemon=True)
        self._opening.start()
        try:
            async with asyncio.timeout(self.settings.open_seconds):
                return await done
        except TimeoutError:
            raise ProviderError(ErrorKind.TIMEOUT, f"libvirt does not answer within {self.settings.open_seconds:g} s") from None

    def _drop(self, conn: Conn) -> None:
        if self._conn is conn:
            _LOG.warning("libvirt connection lost")
            self._conn = None
            self.events.lost()
            # In a thread of its own: whoever is gone may let this wait.
            threading.Thread(target=self._close, args=(conn,), name="libvirt-close", daemon=True).start()

    def _close(self, conn: Conn) -> None:
        self.events.detach(conn)
        _close(conn)


class _Settlement:
    """Gives the result of a thread to whoever still waits for it; a connection that nobody wants is closed."""

    def __init__(self, loop: asyncio.AbstractEventLoop, future: "asyncio.Future[Conn]") -> None:
        self._loop = loop
        self._future = future

    def succeed(self, conn: Conn) -> None:
        self._call(lambda: _close(conn) if self._future.done() else self._future.set_result(conn), lambda: _close(conn))

    def fail(self, error: ProviderError) -> None:
        self._call(lambda: None if self._future.done() else self._future.set_exception(error), lambda: None)

    def _call(self, action: Callable[[], None], otherwise: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(action)
        except RuntimeError:
            # The loop was closed meanwhile.
            otherwise()


# --- in threads -------------------------------------------------------------------------------------------------------------


class _EventLoop:
    """libvirt's event loop: one for the process, in a thread, before the first connection is opened."""

    _lock = threading.Lock()
    _running = False

    @classmethod
    def start(cls) -> None:
        with cls._lock:
            if cls._running:
                return
            # libvirt prints errors that Python raises anyway.
            libvirt.registerErrorHandler(lambda *_: None, None)
            libvirt.virEventRegisterDefaultImpl()
            threading.Thread(target=cls._run, name="libvirt-events", daemon=True).start()
            cls._running = True

    @staticmethod
    def _run() -> None:
        while True:
            libvirt.virEventRunDefaultImpl()


def credential_files(settings: LibvirtDriverSettings) -> dict[str, bytes]:
    """Return the contents of the credentials by the names of their files."""
    found = {}
    try:
        for path in settings.credentials.iterdir():
            if path.is_file():
                with path.open("rb") as file:
                    found[path.name] = file.read(_LARGEST_CREDENTIAL)
    except OSError:
        # A local endpoint has none.
        return found
    return found


def _connect(uri: str, files: Mapping[str, bytes], silence: int) -> Conn:
    _EventLoop.start()
    answers = {
        libvirt.VIR_CRED_AUTHNAME: files.get(naming.USERNAME, b""),
        libvirt.VIR_CRED_USERNAME: files.get(naming.USERNAME, b""),
        libvirt.VIR_CRED_PASSPHRASE: files.get(naming.PASSWORD, b""),
        libvirt.VIR_CRED_NOECHOPROMPT: files.get(naming.PASSWORD, b""),
    }

    def answer(credentials: list[list[Any]], _: object) -> int:
        for each in credentials:
            value = answers.get(each[0], b"").decode(errors="replace").strip()
            if not value:
                return -1
            each[4] = value
        return 0

    conn = libvirt.openAuth(uri, [[*answers], answer, None], 0)
    # A driver inside this process has no peer that could fall silent.
    with contextlib.suppress(libvirt.libvirtError):
        conn.setKeepAlive(max(1, silence // _KEEPALIVES), _KEEPALIVES)
    return conn


def _refusal(error: Any) -> ProviderError:
    found = failures.of(error, "cannot log in to libvirt")
    if _OTHER_KEY in str(error):
        fix = f"compare {naming.KNOWN_HOSTS} in the Secret of spec.credentialSecretRef with the host's key"
        return ProviderError(ErrorKind.UNAUTHORIZED, found.what, why=found.why, fix=fix, reason=reasons.HYPERVISOR_HOST_KEY)
    if any(each in str(error) for each in _DENIED):
        return ProviderError(
            ErrorKind.UNAUTHORIZED, found.what, why=found.why, fix="compare the Secret of spec.credentialSecretRef with the host"
        )
    return found if found.kind in (ErrorKind.UNAUTHORIZED, ErrorKind.NOT_SUPPORTED) else failures.lost(error)


def _is_alive(conn: Conn) -> bool:
    try:
        return bool(conn.isAlive() == 1)
    except libvirt.libvirtError:
        return False


def _close(conn: Conn) -> None:
    try:
        conn.close()
    except libvirt.libvirtError:
        _LOG.debug("libvirt connection closed already")


def _digest(files: Mapping[str, bytes]) -> str:
    total = hashlib.sha256()
    for name, content in sorted(files.items()):
        total.update(f"{name}\0{len(content)}\0".encode())
        total.update(content)
    return total.hexdigest()
