"""The server that the options of a command name."""

import argparse
import os

from paddock.base.clock import SystemClock
from paddock.base.directories import running_kubeconfigs
from paddock.cli.console import Console
from paddock.kubernetes.client import kubeconfig
from paddock.kubernetes.client.access import Access
from paddock.kubernetes.client.errors import BadAccess


def find(parsed: argparse.Namespace, console: Console) -> Access:
    """Return the access that the options of `arguments.add_server` give; with -v, say which it is. Raises `BadAccess`."""
    try:
        chosen = kubeconfig.choose(
            os.environ, SystemClock(), explicit=parsed.kubeconfig, context=parsed.context, local=running_kubeconfigs(os.environ)
        )
    except BadAccess as error:
        error.fix = error.fix or "start a server with `paddock up`, or name a kubeconfig with --kubeconfig"
        raise
    if parsed.verbose:
        console.say(f"paddock: {chosen.access.server}, by {chosen.source}")
    return chosen.access
