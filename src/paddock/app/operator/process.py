"""An operator as a process: its log, its signals, its end."""

import argparse
import asyncio
import logging
import os
import signal
import socket
import sys
import uuid
from typing import TextIO

import msgspec

from paddock.app.operator import kubeconfig, options
from paddock.app.operator.operator import Operator
from paddock.app.operator.settings import OperatorSettings
from paddock.app.server import eventloop
from paddock.app.server.watchdog import LoopWatchdog
from paddock.base.errors import PaddockError
from paddock.kubernetes.client.access import Access
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.http.https import Https
from paddock.kubernetes.runtime.election import StillActing
from paddock.kubernetes.runtime.logs import JsonLines, TextLines
from paddock.kubernetes.runtime.machinery import Machinery

_LOG = logging.getLogger(__name__)


def run(parsed: argparse.Namespace) -> int:
    """Work until SIGTERM or SIGINT; a second one ends it at once."""
    settings = options.settings(parsed, os.environ)
    machinery = Machinery()
    access, front = kubeconfig.find(settings, os.environ, machinery.clock), kubeconfig.front(settings, os.environ, machinery.clock)
    settings = msgspec.structs.replace(settings, namespace=settings.namespace or access.namespace)
    _log_to(sys.stderr, settings)
    with asyncio.Runner(loop_factory=eventloop.new) as runner:
        return runner.run(_work(settings, machinery, access, front))


def _log_to(stream: TextIO, settings: OperatorSettings) -> None:
    lines = logging.StreamHandler(stream)
    lines.setFormatter(JsonLines() if settings.log_format == "json" else TextLines())
    logging.basicConfig(level=settings.log_level.upper(), handlers=[lines], force=True)


async def _work(settings: OperatorSettings, machinery: Machinery, access: Access, front: Access | None) -> int:
    clients = [Client(Https(each), observe=machinery.observe_request) for each in (access, front) if each is not None]
    identity = f"{socket.gethostname()}_{uuid.uuid4()}"
    operator = Operator(settings, clients[0], machinery, identity=identity, front=clients[1] if front is not None else None)
    work = asyncio.create_task(operator.run(), name="operator")
    _end_on_signals(work)
    eventloop.manage_memory()
    watchdog = LoopWatchdog(machinery.metrics)
    watchdog.arm()
    dialects = sorted(settings.fronts.wanted)
    _LOG.info("operator started", extra={"server": access.server, "dialects": dialects, "identity": identity, "lease": settings.lease.name})
    try:
        await work
    except asyncio.CancelledError:
        _LOG.info("operator stopped")
        return 0
    except StillActing as problem:
        _LOG.critical("leader election lost while work continues; exiting", extra={"error": str(problem)})
        logging.shutdown()
        # Whatever does not end must not hold up the end.
        os._exit(1)
    except PaddockError as problem:
        _LOG.critical("operator failed", extra={"error": str(problem)})
        return 1
    except Exception:
        _LOG.critical("operator failed because of a defect", exc_info=True)
        return 1
    finally:
        watchdog.stop()
        for client in clients:
            await client.close()
    return 0


def _end_on_signals(work: "asyncio.Task[None]") -> None:
    running = asyncio.get_running_loop()

    def end(number: signal.Signals) -> None:
        _LOG.info("operator stopping", extra={"signal": number.name})
        for each in (signal.SIGTERM, signal.SIGINT):
            running.remove_signal_handler(each)
        work.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        running.add_signal_handler(number, end, number)
