"""The demonstration from its first line until all guests answer: time on the wall, and CPU time of the server and of QEMU.

The wall shows what a person waits for, and depends on everything else that runs; CPU time shows what Paddock and the guest could save.
The image is built before. The network is the one of users without rights, so that the host's own stays as it is.
"""

import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

from paddock.app.directory import process
from paddock.engine.machine.process import holders
from tools.bench.offline import BenchError, Figure
from tools.bench.programs import cpu_seconds
from tools.demo.place import REPOSITORY, Place


def measure(folder: Path) -> list[Figure]:
    """Three figures of one run."""
    # Each guest has a user of its own, who passes through the directory.
    folder.chmod(0o711)
    place = Place(folder / "demo")
    environment = {"PADDOCK_DEMO_NETWORK": "user", **os.environ, "PADDOCK_DEMO_DIR": str(place.root), "PADDOCK_DEMO_KEEP": "yes"}
    command = [sys.executable, "-m", "paddock.app", "image", "build", "tiny", "--output", str(folder / "image")]
    _run(command, environment)
    try:
        said = _run([sys.executable, "-m", "tools.demo", "up"], environment)
        return figures(said, _server_seconds(place), _guest_seconds(place))
    finally:
        _run([sys.executable, "-m", "tools.demo", "down"], environment)


def figures(said: str, server: float, guests: list[float]) -> list[Figure]:
    """Return the figures of a demonstration's output and CPU times."""
    ready = re.search(r"guests of \d+ dialects run and answer after (\d+) s", said)
    if ready is None or not guests:
        raise BenchError(f"the demonstration showed no guests that answer: {said[-2000:]}")
    return [
        Figure("until all guests of the demonstration answer", float(ready[1]), f"{len(guests)} guests"),
        Figure("CPU of the QEMU of a guest, median", statistics.median(guests)),
        Figure("CPU of the server", server),
    ]


def _run(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"{' '.join(command[1:4])} ended with {done.returncode}: {(done.stderr or done.stdout)[-2000:]}")
    return done.stdout


def _server_seconds(place: Place) -> float:
    found = process.find(place.host)
    return 0.0 if found is None else cpu_seconds(found.pid)


def _guest_seconds(place: Place) -> list[float]:
    return [cpu_seconds(pid) for lock in place.host.engine.glob("machines/*/lock") for pid in holders(lock)]
