"""A served driver as a process: its log, its signals, its end."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from paddock.app.provider.translation import translate
from paddock.app.server import eventloop
from paddock.app.server.watchdog import LoopWatchdog
from paddock.base.clock import SystemClock
from paddock.base.metrics import MetricsRegistry
from paddock.contract import server, tls
from paddock.contract.factory import CREDENTIALS, STAGING, DriverContext, DriverFactory
from paddock.kubernetes.runtime.logs import JsonLines, TextLines
from paddock_drivers import catalog

_LOG = logging.getLogger(__name__)


class ServeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of `paddock provider serve`."""

    type: str
    server: server.ProviderServerSettings
    tls_directory: Path = tls.FOLDER
    # plain text, without looking for TLS files
    insecure: bool = False
    credentials: Path = CREDENTIALS
    staging: Path = STAGING
    # end when standard input ends: whoever started this program is gone then
    ends_with_input: bool = False
    script: Path | None = None
    seed: int | None = None
    log_level: str = "info"
    log_format: str = "text"


def run(settings: ServeSettings) -> int:
    """Serve until SIGTERM or SIGINT. Raises `PaddockError` if it cannot begin."""
    factory = catalog.find(settings.type)
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(JsonLines() if settings.log_format == "json" else TextLines())
    logging.basicConfig(level=settings.log_level.upper(), handlers=[lines], force=True)
    with asyncio.Runner(loop_factory=eventloop.new) as runner:
        return runner.run(_work(settings, factory))


async def _work(settings: ServeSettings, factory: DriverFactory) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if settings.ends_with_input:
        loop.add_reader(sys.stdin.fileno(), _read_input, stop)
    eventloop.manage_memory()
    watchdog = LoopWatchdog(MetricsRegistry())
    watchdog.arm()
    try:
        await serve(settings, factory, stop)
    finally:
        watchdog.stop()
    _LOG.info("provider stopped")
    return 0


def _read_input(stop: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        stop.set()


async def serve(settings: ServeSettings, factory: DriverFactory, stop: asyncio.Event) -> None:
    """Serve the driver until `stop`."""
    context = DriverContext(
        clock=SystemClock(),
        environment=os.environ,
        credentials=settings.credentials,
        staging=settings.staging,
        translation=translate,
        script=settings.script,
        seed=settings.seed,
    )
    environment: Mapping[str, str] = os.environ
    folder = settings.tls_directory
    if settings.insecure:
        environment, folder = {**os.environ, tls.INSECURE: "true"}, Path(os.devnull)
    async with factory(context) as driver:
        await server.serve(driver, settings.server, environment, stop, folder)
