"""`paddock ui`: serves the web console beside any server."""

import argparse
import asyncio
import os
import signal
import webbrowser
from pathlib import Path

import msgspec

from paddock.app.server import eventloop, start
from paddock.app.webconsole import program
from paddock.base.directories import default_root
from paddock.cli import arguments, serveraccess
from paddock.cli.console import Console
from paddock.kubernetes.client.access import Access
from paddock.web.server import ConsoleServer

TEXT = """Serve the web console on this host until Ctrl+C: machines of every dialect as they are now, what is wrong with them, and what an
edit will do. It works with every server that the kubeconfig names and has the rights of its user, no others. The link that it prints
opens one session, once, within ten minutes."""
_EXITS = {0: "ended by a signal", 2: "failure, or wrong usage"}


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("ui", TEXT, exits=_EXITS)
    add = options.add_argument
    add("--open", action="store_true", help="Open the link in the browser")
    words = "Address to listen on; port 0 picks a free one (default: 127.0.0.1:7444)"
    add("--listen", metavar="ADDRESS:PORT", default="127.0.0.1:7444", help=words)
    words = (
        "Sign in by the printed link, or with a token that the API server judges: a ServiceAccount's, or an OIDC ID token (default: link)"
    )
    arguments.add_choice(options, ("--login",), ("link", "token", "oidc"), words, "link")
    add("--name", action="append", default=[], metavar="NAME", help="Name or address under which browsers reach the console; repeatable")
    add("--tls-cert-file", type=Path, metavar="FILE", help="Serving certificate; needed beyond loopback")
    add("--tls-private-key-file", type=Path, metavar="FILE", help="Private key of --tls-cert-file")
    arguments.add_server(options)
    return options


def run(argv: list[str], console: Console) -> int:
    """Serve the console until a signal ends it."""
    parsed = parser().parse_args(argv)
    access = serveraccess.find(parsed, console)
    start.log_to_stderr()
    with asyncio.Runner(loop_factory=eventloop.new) as runner:
        runner.run(_serve(parsed, access, console))
    return 0


async def _serve(parsed: argparse.Namespace, access: Access, console: Console) -> None:
    if parsed.namespace:
        access = msgspec.structs.replace(access, namespace=parsed.namespace)
    given = program.ConsoleOptions(
        listen=parsed.listen,
        login=parsed.login,
        names=tuple(parsed.name),
        certificate=parsed.tls_cert_file,
        key=parsed.tls_private_key_file,
    )
    server = program.make(program.settings(given), access, default_root())
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await server.start()
    try:
        _announce(server, console, wants_browser=parsed.open)
        await stop.wait()
    finally:
        await server.close()


def _announce(server: ConsoleServer, console: Console, *, wants_browser: bool) -> None:
    link = server.link()
    console.out(f"{link}\n")
    console.flush()
    console.say(f"paddock: the console is ready at {server.address}; Ctrl+C ends it")
    if not wants_browser:
        return
    # Without a display the module would start a browser in this very terminal.
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")) or not webbrowser.open(link):
        console.say("paddock: no browser can be opened here; open the link yourself")
