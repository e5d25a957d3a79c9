"""`paddock provider serve`: serves a driver as a provider."""

import argparse
import os
from collections.abc import Mapping
from pathlib import Path

from paddock.app.provider import server
from paddock.cli import arguments
from paddock.cli.console import Console
from paddock.cli.exits import STALLED
from paddock.contract import tls
from paddock.contract.factory import CREDENTIALS, STAGING
from paddock.contract.server import ProviderServerSettings

TEXT = """Serve a driver as a provider: gRPC with mutual TLS, and health pages over HTTP. An environment variable named in
brackets applies when its option is absent."""
_EXITS = {0: "ended by a signal", 2: "wrong usage, or it cannot be served", STALLED: "the event loop stood still for 30 s"}
# `warn` is VirtRigaud's word for `warning`.
_LEVELS, _FORMATS = ("debug", "info", "warning", "error"), ("text", "json")
_ANYWHERE, _LOCAL = "0.0.0.0", "127.0.0.1"


def parser() -> arguments.Parser:
    """Return the parser of the command."""
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
    words = f"Directory with a file for each credential (default: {CREDENTIALS})"
    options.add_argument("--credentials-dir", metavar="DIR", type=Path, default=CREDENTIALS, help=words)
    words = f"Directory with a subdirectory for each staging claim (default: {STAGING})"
    options.add_argument("--staging-dir", metavar="DIR", type=Path, default=STAGING, help=words)
    words = "Serve on an inherited socket that listens already, in place of --address and --port"
    options.add_argument("--listen-fd", metavar="N", type=int, help=words)
    options.add_argument("--end-with-stdin", action="store_true", help="End when standard input ends")
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
    arguments.add_choice(log, ("--log-level",), _LEVELS, "Minimum log level (default: info) [LOG_LEVEL]")
    arguments.add_choice(log, ("--log-format",), _FORMATS, "Log format (default: text) [LOG_FORMAT]")
    return options


def run(argv: list[str], console: Console) -> int:
    """Serve until a signal ends it."""
    options = parser()
    parsed = options.parse_args(argv)

    return server.run(_settings(options, parsed, os.environ))


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
        descriptor=parsed.listen_fd,
        health_port=parsed.health_port or None,
        allowed=frozenset(parsed.allow),
    )
    return server.ServeSettings(
        type=chosen,
        server=listening,
        tls_directory=parsed.tls_dir or tls.FOLDER,
        insecure=parsed.insecure,
        credentials=parsed.credentials_dir,
        staging=parsed.staging_dir,
        ends_with_input=parsed.end_with_stdin,
        script=parsed.script,
        seed=parsed.seed,
        log_level=parsed.log_level or _chosen(options, environment, "LOG_LEVEL", {each: each for each in _LEVELS} | {"warn": "warning"}),
        log_format=parsed.log_format or _chosen(options, environment, "LOG_FORMAT", {each: each for each in _FORMATS}),
    )


def _chosen(options: arguments.Parser, environment: Mapping[str, str], variable: str, choices: Mapping[str, str]) -> str:
    """The value of a variable; the default of its setting when it is empty."""
    word = environment.get(variable, "")
    if word and word not in choices:
        options.error(f"{variable} cannot be {word!r}: choose of {', '.join(choices)}")
    return choices.get(word) or {"LOG_LEVEL": "info", "LOG_FORMAT": "text"}[variable]


def _port(word: str) -> int:
    if not (word.isascii() and word.isdecimal() and int(word) < 65536):
        raise argparse.ArgumentTypeError(f"{word!r} is no port")
    return int(word)
