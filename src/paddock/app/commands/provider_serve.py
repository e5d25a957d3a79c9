"""`paddock provider serve`: serves a driver as a provider."""

import argparse
import os
from collections.abc import Mapping
from pathlib import Path

from paddock.app.provider import server
from paddock.cli import arguments
from paddock.cli.console import Console
from paddock.contract import tls
from paddock.contract.server import ProviderServerSettings

TEXT = """Serve a driver as a provider: gRPC with mutual TLS, and health pages over HTTP. An environment variable named in
brackets applies when its option is absent."""
_EXITS = {0: "ended by a signal", 2: "wrong usage, or it cannot be served"}
_ANYWHERE, _LOCAL = "0.0.0.0", "127.0.0.1"


def run(given: list[str], console: Console) -> int:
    """Serve until a signal ends it."""
    options = _options()
    parsed = options.parse_args(given)

    return server.run(_settings(options, parsed, os.environ))


def _options() -> arguments.Parser:
    options = arguments.parser("provider serve", TEXT, exits=_EXITS)
    options.add_argument(
        "--type", metavar="TYPE", default="", help="Driver: fake, kubevirt, qemu, or MODULE:NAME of one's own [PROVIDER_TYPE]"
    )
    options.add_argument(
        "--address", metavar="HOST", default="", help=f"Address to listen at (default: {_ANYWHERE}; with --insecure: {_LOCAL})"
    )
    options.add_argument("--port", metavar="PORT", type=_port, default=9443, help="Port of the provider (default: 9443)")
    options.add_argument(
        "--health-port", metavar="PORT", type=_port, default=8080, help="Port of the health pages, 0 for none (default: 8080)"
    )
    options.add_argument("--script", metavar="FILE", type=Path, help="Settings and faults of the fake driver (TOML or JSON)")
    options.add_argument("--seed", metavar="N", type=int, help="Seed of the fake driver (default: the script's, or 0)")
    security = options.add_argument_group("security")
    security.add_argument(
        "--tls-dir", metavar="DIR", type=Path, help="Directory of tls.crt, tls.key and ca.crt (default: /etc/virtrigaud/tls)"
    )
    security.add_argument(
        "--allow",
        metavar="NAME",
        action="append",
        default=[],
        help="Name that a client's certificate must have; repeatable (default: any) [VIRTRIGAUD_PROVIDER_ALLOWED_SANS]",
    )
    security.add_argument("--insecure", action="store_true", help="Serve in plain text to everybody [VIRTRIGAUD_PROVIDER_INSECURE]")
    log = options.add_argument_group("log")
    arguments.add_choice(log, ("--log-level",), ("debug", "info", "warning", "error"), "Minimum log level (default: info)", "info")
    arguments.add_choice(log, ("--log-format",), ("text", "json"), "Log format (default: text)", "text")
    return options


def _settings(options: arguments.Parser, parsed: argparse.Namespace, environment: Mapping[str, str]) -> server.ServeSettings:
    chosen = parsed.type or environment.get("PROVIDER_TYPE", "")
    if not chosen:
        options.error("name a driver: --type fake, kubevirt, qemu or MODULE:NAME")
    if chosen != "fake" and (parsed.script is not None or parsed.seed is not None):
        options.error("--script and --seed are for --type fake")
    if parsed.insecure and parsed.tls_dir is not None:
        options.error("--insecure and --tls-dir exclude each other")
    listening = ProviderServerSettings(
        host=parsed.address or (_LOCAL if parsed.insecure else _ANYWHERE),
        port=parsed.port,
        health_port=parsed.health_port or None,
        allowed=frozenset(parsed.allow),
    )
    return server.ServeSettings(
        type=chosen,
        server=listening,
        tls_directory=parsed.tls_dir or tls.FOLDER,
        insecure=parsed.insecure,
        script=parsed.script,
        seed=parsed.seed,
        log_level=parsed.log_level,
        log_format=parsed.log_format,
    )


def _port(word: str) -> int:
    if not (word.isascii() and word.isdecimal() and int(word) < 65536):
        raise argparse.ArgumentTypeError(f"{word!r} is no port")
    return int(word)
