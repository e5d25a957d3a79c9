"""Starting a server: options, the process in the background, signals, the end."""

import asyncio
import contextlib
import fcntl
import gc
import logging
import os
import select
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from paddock.app.directory import contexts, diskformat, guestkind, process
from paddock.app.directory.paths import DataPaths
from paddock.app.options import server as options
from paddock.app.options.settings import ServerSettings
from paddock.app.server import eventloop
from paddock.base import allocator
from paddock.base.clock import SystemClock
from paddock.base.errors import PaddockError, Terminal
from paddock.base.notify import ServiceNotifier
from paddock.cli.console import Console
from paddock.kubernetes.client import kubeconfig
from paddock.kubernetes.runtime.logs import TextLines

if TYPE_CHECKING:
    from paddock.app.server.server import ServerHandle
    from paddock.server.housekeeping.node import NodeProblem
    from paddock.web.server import ConsoleServer

_READY_SECONDS = 60.0
_LEAST_BYTES = 1 << 20
# Guests of a server that keeps nothing.
_END_SECONDS = 10.0


def start(command: str, text: str, argv: list[str], console: Console) -> int:
    """Run `paddock up` or `paddock apiserver`."""
    parsed, note = options.read(command, text, argv)
    settings = options.settings(command, parsed)
    if parsed.detach and settings.temporary:
        raise Terminal("a server in the background needs a directory", fix="name one: --dir")
    if note:
        console.say(f"paddock: options without effect: {note}")
    if settings.ui:
        from paddock.app.webconsole import program  # noqa: PLC0415 - most servers have no console

        # An address that will not do is refused before anything is started.
        program.settings(program.ConsoleOptions(listen=settings.ui))
    places = DataPaths(settings.root)
    diskformat.check(places.root)
    if settings.controllers:
        guestkind.check(places.root, settings.machines.guests)
    already = process.find(places)
    if already is not None:
        raise Terminal(
            f"a server is running in {settings.root} already", why=f"process {already.pid}, {already.address}", fix="paddock down"
        )
    if settings.in_memory and settings.controllers:
        from paddock.app.directory import guests  # noqa: PLC0415 - other starts ask when they know their store

        guests.refuse_in_memory(places.engine)
    directory = _Directory(places.root, made=settings.temporary)
    try:
        if parsed.detach:
            return _detach(settings, console, directory)
        return _run(settings, console, directory)
    except BaseException:
        directory.remove()
        raise


def _run(settings: ServerSettings, console: Console, directory: "_Directory", waiter: "_Waiter | None" = None) -> int:
    with _namespace(settings) if os.geteuid() and settings.controllers else contextlib.nullcontext():
        # Nothing is garbage until everything is loaded, and looking for garbage takes a tenth of a start.
        gc.disable()
        allocator.settle()
        log_to_stderr()
        # The thread that commits is waited for by every writer: when the disk has answered, it gets its turn within a millisecond.
        sys.setswitchinterval(0.001)
        with asyncio.Runner(loop_factory=eventloop.new) as runner:
            runner.run(_serve(settings, console, directory, waiter or _Waiter()))
    return 0


@contextlib.contextmanager
def _namespace(settings: ServerSettings) -> Iterator[None]:
    """An ordinary user's network namespace, if there can be one. Only a process of one thread can join it, so nothing comes before."""
    from paddock.engine.networks import rootless  # noqa: PLC0415 - root needs none

    networks = DataPaths(settings.root).engine / "networks"
    rootless.enter(networks, settings.machines.network)
    try:
        yield
    finally:
        rootless.leave(networks)


class _Directory:
    """The directory of a server. One that a start made is removed when the start fails, and never once a server may use it."""

    def __init__(self, root: Path, *, made: bool = False) -> None:
        """`made`: this start made it already, and it is there."""
        self._root = root
        self._is_ours = made or not root.exists()

    def keep(self) -> None:
        """Leave the directory alone from now on."""
        self._is_ours = False

    def remove(self) -> None:
        """Remove the directory if this start made it."""
        if self._is_ours:
            shutil.rmtree(self._root, ignore_errors=True)


class _Waiter:
    """The process that waits for a server in the background; of a server in the foreground there is none."""

    def __init__(self, pipe: int | None = None) -> None:
        self._pipe = pipe

    def wake(self) -> None:
        """Have it read the file of the server."""
        if self._pipe is not None:
            # It waits no longer once the server was ready.
            with contextlib.suppress(BrokenPipeError):
                os.write(self._pipe, b"\n")


def log_to_stderr() -> None:
    """Write the log to standard error, one line a record."""
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(TextLines())
    logging.basicConfig(level=logging.INFO, handlers=[lines])


async def _serve(settings: ServerSettings, console: Console, directory: _Directory, waiter: "_Waiter") -> None:
    from paddock.app.server.server import ServerHandle  # noqa: PLC0415 - everything a server needs; `--detach` and `--help` do without

    service = ServiceNotifier()
    # Nothing that the server writes is anybody else's business, whatever the directory it was given is like.
    os.umask(0o077)
    server = ServerHandle(settings)
    places = DataPaths(settings.root)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        await server.start()
    except sqlite3.Error as error:
        raise Terminal(
            f"cannot write to {places.store}", why=str(error), fix="make room there, or name another directory: --dir"
        ) from error
    directory.keep()
    readiness = _Readiness(server, places, console, service, waiter)
    readiness.follow()
    page: ConsoleServer | None = None
    try:
        page = await _open_page(settings, places, server)
        if page is not None:
            readiness.show(page.address, page.link())
        await stop.wait()
    finally:
        service.stopping()
        console.say("paddock: stopping")
        if page is not None:
            await page.close()
        await server.stop()
        places.pid.unlink(missing_ok=True)
        if settings.temporary:
            await _end_guests(settings, places)
            shutil.rmtree(settings.root, ignore_errors=True)


async def _open_page(settings: ServerSettings, places: DataPaths, server: "ServerHandle") -> "ConsoleServer | None":
    """Start the web console, if it is wanted, with the rights of the administrator."""
    if not settings.ui:
        return None
    if not server.has_kubeconfig:
        why = "the server knows no client certificates of its own, so it wrote no kubeconfig"
        raise Terminal("--ui needs the kubeconfig of the server", why=why, fix="run `paddock ui` with a kubeconfig of yours")
    from paddock.app.webconsole import program  # noqa: PLC0415 - most servers have no console

    access = kubeconfig.find({}, SystemClock(), explicit=places.kubeconfig)
    page = program.make(program.settings(program.ConsoleOptions(listen=settings.ui)), access, settings.root)
    await page.start()
    return page


class _Readiness:
    """Says when a server is ready, and why not: on the terminal, and in the file that `paddock status` and `--detach` read."""

    def __init__(self, server: "ServerHandle", places: DataPaths, console: Console, service: ServiceNotifier, waiter: "_Waiter") -> None:
        self._waiter = waiter
        self._server = server
        self._places = places
        self._console = console
        self._service = service
        self._reported = ""
        self._problem: NodeProblem | None = None
        self._is_known = False
        # the link that opens the web console
        self._link = ""

    def follow(self) -> None:
        """Say it now, and whenever it changes."""
        machines = self._server.machines
        if machines is None:
            self._said(None)
            return
        self._write()
        machines.listeners.append(self._said)

    def show(self, address: str, link: str) -> None:
        """Say where the web console is."""
        self._link = link
        self._write()
        self._console.say(f"paddock: the console is ready at {address}; sign in with {link}")

    def _write(self) -> None:
        words = self._problem.message if self._problem is not None else ""
        ready = self._is_known and self._problem is None
        limits = self._server.host.line() if self._is_known else ""
        process.write(self._places, process.this(self._server.address, ready=ready, problem=words, limits=limits, console=self._link))
        self._waiter.wake()

    def _said(self, problem: "NodeProblem | None") -> None:
        address, limits = self._server.address, self._server.host.line()
        words = problem.message if problem is not None else ""
        if not self._is_known:
            eventloop.manage_memory()
            self._server.arm_watchdog()
        self._problem, self._is_known = problem, True
        self._write()
        if limits and limits != self._reported:
            self._console.say(f"paddock: {limits}")
            self._reported = limits
        # It answers, so what waits for it may start; a restart would mend nothing that a retry does not.
        self._service.ready(words or f"ready at {address}")
        if problem is not None:
            self._console.say(f"paddock: the server answers at {address}, but it is not ready: {problem.message}")
            self._console.say("paddock: retrying until it works")
            return
        way_in = f"; {_way_in(self._places)}" if self._server.has_kubeconfig else ""
        self._console.say(f"paddock: ready at {address}{way_in}")


async def _end_guests(settings: ServerSettings, places: DataPaths) -> None:
    """Guests whose directory goes with the process go with it, too."""
    if settings.controllers:
        from paddock.app.directory import purge  # noqa: PLC0415

        await purge.clear(places, _END_SECONDS)


def _detach(settings: ServerSettings, console: Console, directory: _Directory) -> int:
    places = DataPaths(settings.root)
    places.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    is_new = not places.kubeconfig.exists()
    console.flush()
    child, pipe = _fork(places.log)
    if child == 0:
        # The parent removes what a failed start leaves, once it has read the log.
        directory.keep()
        return _run(settings, console, directory, _Waiter(pipe))
    end = time.monotonic() + _READY_SECONDS
    while select.select([pipe], [], [], max(end - time.monotonic(), 0))[0]:
        has_ended = not os.read(pipe, 1)
        found = process.find(places)
        if found is not None and found.pid == child and found.problem:
            directory.keep()
            fix = "Paddock retries: `paddock status` shows when it is ready, `paddock down` stops the server"
            raise PaddockError(f"the server answers at {found.address}, but it is not ready", why=found.problem, fix=fix)
        if found is not None and found.pid == child and found.ready and (found.console or not settings.ui):
            if found.limits:
                console.say(f"paddock: {found.limits}")
            if found.console:
                console.say(f"paddock: the console is ready; sign in with {found.console}")
            # It runs, so an interrupted question must not take its directory.
            directory.keep()
            console.out(f"ready at {found.address}; {_way_in(places)}\n")
            if is_new and not settings.in_memory and places.kubeconfig.exists():
                _offer_context(places, console)
            return 0
        if has_ended:
            # The child closes the pipe before its other files, which keep the file system busy: wait for its end.
            os.waitpid(child, 0)
            raise PaddockError("the server did not start", why=_last_line(places.log))
    directory.keep()
    raise PaddockError("the server is not ready yet", fix=f"look at {places.log}, or ask with `paddock status`")


def _fork(log: Path) -> tuple[int, int]:
    """Return twice, as `os.fork` does, with the ends of a pipe from the child to the parent.

    The child leads a session of its own, writes to the log, and holds no other file of its parent. A new interpreter would load again what
    is loaded here already.
    """
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(written)
        os.close(writing)
        return child, reading
    os.setsid()
    # A caller may have closed its standard files, whose numbers the others then have.
    pipe = fcntl.fcntl(writing, fcntl.F_DUPFD_CLOEXEC, 3)
    for source, target in ((written, 1), (written, 2), (os.open(os.devnull, os.O_RDONLY), 0)):
        os.dup2(source, target)
    os.closerange(3, pipe)
    os.closerange(pipe + 1, os.sysconf("SC_OPEN_MAX"))
    return 0, pipe


def _way_in(places: DataPaths) -> str:
    """Return how to use the server, until its context is in the user's kubeconfig."""
    with contextlib.suppress(PaddockError):
        if name := contexts.name_in_file(places.root, os.environ):
            return f'its context is "{name}"'
    return f"use it with KUBECONFIG={places.kubeconfig}, or once and for all: `{contexts.words(places.root)}`"


def _offer_context(places: DataPaths, console: Console) -> None:
    with contextlib.suppress(PaddockError):
        if not contexts.name_in_file(places.root, os.environ):
            contexts.offer(places.root, console)


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    if lines:
        return lines[-1].removeprefix("paddock: ")
    room = os.statvfs(log.parent)
    if room.f_bavail * room.f_frsize < _LEAST_BYTES:
        return f"the file system of {log.parent} is full, and its log is empty; make room there"
    return "it said nothing"
