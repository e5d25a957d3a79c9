"""The client of a provider at an address, from the options of a command."""

import argparse
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from paddock.app.provider.translation import translate
from paddock.base.clock import SystemClock
from paddock.base.errors import Terminal
from paddock.cli import arguments
from paddock.contract import tls
from paddock.contract.breaker import BreakerSettings
from paddock.contract.client import ProviderClient, RemoteSettings
from paddock.contract.driver import Driver
from paddock.contract.factory import DriverContext
from paddock.contract.pool import PoolSettings, PoolTarget
from paddock_drivers import catalog

_PORT = 9443
# The suite provokes failures; none of them may hide the provider behind an open breaker.
_NEVER = BreakerSettings(failures=1 << 30)


class BadAddress(Terminal):
    """An address that is none."""


def add_options(options: arguments.Parser) -> None:
    """Add the options that choose a provider."""
    group = options.add_argument_group("provider")
    group.add_argument("--address", metavar="HOST[:PORT]", default="", help=f"Address of the provider (default port: {_PORT})")
    group.add_argument("--driver", metavar="NAME", default="", help="Driver to load instead of an address: fake, or MODULE:NAME")
    group.add_argument("--script", metavar="FILE", type=Path, help="With --driver fake: its script (TOML or JSON)")
    group.add_argument("--tls-dir", metavar="DIR", type=Path, help="Directory with tls.crt, tls.key and ca.crt (default: plain text)")
    group.add_argument("--server-name", metavar="NAME", default="", help="Name in the provider's certificate (default: the host)")


def check_options(options: arguments.Parser, parsed: argparse.Namespace) -> None:
    """End with wrong usage unless the options name one provider."""
    if bool(parsed.address) == bool(parsed.driver):
        options.error("name one provider: --address HOST:PORT, or --driver MODULE:NAME")
    if parsed.script is not None and parsed.driver != "fake":
        options.error("--script is for --driver fake")


def split(address: str, port: int = _PORT) -> tuple[str, int]:
    """Return host and port of HOST, HOST:PORT, [ADDRESS] or [ADDRESS]:PORT. Raises `BadAddress`."""
    host, colon, rest = address.rpartition(":") if not address.endswith("]") else (address, "", "")
    if not colon:
        host, rest = address, str(port)
    bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if bracketed else host
    good = bool(host) and rest.isascii() and rest.isdecimal() and int(rest) < 65536 and (bracketed or ":" not in host)
    if not good:
        raise BadAddress(f"{address!r} is no address", fix="write HOST:PORT or [ADDRESS]:PORT")
    return host, int(rest)


@asynccontextmanager
async def connect(parsed: argparse.Namespace, *, calls: int) -> AsyncIterator[Driver]:
    """The provider of the options, for as many calls at a time."""
    if parsed.driver:
        context = DriverContext(clock=SystemClock(), environment=os.environ, script=parsed.script, translation=translate)
        async with catalog.find(parsed.driver)(context) as driver:
            yield driver
        return
    host, port = split(parsed.address)
    security = tls.client_context(_material(parsed.tls_dir)) if parsed.tls_dir is not None else None
    target = PoolTarget(host, port, security, (parsed.server_name or host) if security else "")
    pool = PoolSettings(connections=max(1, calls // 50), connect_seconds=10.0)
    client = ProviderClient(target, RemoteSettings(parsed.address, qps=None, pool=pool, breaker=_NEVER))
    try:
        yield client
    finally:
        await client.close()


def _material(folder: Path) -> tls.TlsMaterial:
    try:
        certificate, key, authority = ((folder / name).read_bytes() for name in ("tls.crt", "tls.key", "ca.crt"))
    except OSError as error:
        raise tls.UnusableTls(f"cannot read the TLS files in {folder}", why=error.strerror or str(error)) from error
    return tls.TlsMaterial(certificate, key, authority)
