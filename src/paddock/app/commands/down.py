"""`paddock down`: stop the server of a directory."""

import os
import signal
import time
from pathlib import Path

from paddock.app import running
from paddock.app.places import Places
from paddock.base.directories import default_root
from paddock.base.errors import Transient
from paddock.cli import arguments
from paddock.cli.console import Console

TEXT = "stop the control plane"


def run(given: list[str], console: Console) -> int:
    """Ask the server to stop and wait until it has."""
    options = arguments.parser("down", TEXT)
    options.add_argument("--dir", type=Path, default=None, help="directory of the server")
    options.add_argument("--timeout", type=float, default=60.0, help="seconds to wait (default: 60)")
    parsed = options.parse_args(given)
    root = parsed.dir or default_root()
    found = running.find(Places(root))
    if found is None:
        console.say(f"paddock: no server is running in {root}")
        return 0
    os.kill(found.pid, signal.SIGTERM)
    end = time.monotonic() + parsed.timeout
    while running.is_alive(found):
        if time.monotonic() > end:
            raise Transient(f"the server {found.pid} is still stopping", fix="wait, or look at its log")
        time.sleep(0.05)
    console.out(f"stopped the server in {root}\n")
    return 0
