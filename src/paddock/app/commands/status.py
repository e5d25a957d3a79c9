"""`paddock status`: shows whether the server of a directory is ready, or the replicas of an operator."""

import json
import urllib.error
import urllib.request
from collections.abc import Sequence

import msgspec

from paddock.app.directory import guestkind, process
from paddock.app.directory.paths import DataPaths
from paddock.app.operator import readiness
from paddock.app.operator.readiness import ReplicaReadiness
from paddock.base import duration
from paddock.base.certificates import trusting
from paddock.base.directories import default_root
from paddock.cli import arguments
from paddock.cli.console import Console

TEXT = """Show whether the control plane is ready, its address, its process and its kubeconfig.
With --operator, show whether every replica of a `paddock operator` is ready, and if not, why."""
_EXITS = {0: "ready", 1: "not running, or not ready", 2: "wrong usage"}


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("status", TEXT, exits=_EXITS)
    arguments.add_directory(options)
    arguments.add_format(options, formats=("text", "json"))
    words = "Ask the operator whose probes have this address, such as http://127.0.0.1:8081; all replicas if the name has several addresses"
    options.add_argument("--operator", metavar="URL", default="", help=words)
    words = "With --operator: time to wait until all replicas are ready (default: 0s)"
    options.add_argument("--wait", metavar="DURATION", default="0s", help=words)
    return options


def run(argv: list[str], console: Console) -> int:
    """Print one line or a document; return 0 when the server is ready, 1 otherwise."""
    parsed = parser().parse_args(argv)
    if parsed.operator:
        return _show_replicas(readiness.wait(parsed.operator, duration.parse(parsed.wait) / duration.SECOND), parsed.output, console)
    places = DataPaths(parsed.dir or default_root())
    found = process.find(places)
    ready = found is not None and _is_ready(found.address, places)
    simulated = found is not None and guestkind.kind_of(places.root) == "simulated"
    said = {
        "running": found is not None,
        "ready": ready,
        "directory": str(places.root),
        **({"pid": found.pid, "address": found.address, "kubeconfig": str(places.kubeconfig)} if found else {}),
        **({"guests": "simulated"} if simulated else {}),
        **({"problem": found.problem} if found is not None and found.problem else {}),
    }
    if parsed.output == "json":
        console.out(json.dumps(said) + "\n")
    elif found is None:
        console.out(f"not running (directory {places.root}); start it with `paddock up`\n")
    else:
        state = "ready" if ready else "not ready"
        console.out(f"{state}: {found.address} (process {found.pid}), kubeconfig {places.kubeconfig}\n")
        if simulated:
            console.out("guests are simulated: no machine runs\n")
        if found.problem:
            console.out(f"machines are unmanaged: {found.problem}\n")
    return 0 if ready else 1


def _show_replicas(replica_readiness: Sequence[ReplicaReadiness], form: str, console: Console) -> int:
    if form == "json":
        console.out(json.dumps([msgspec.to_builtins(each) for each in replica_readiness]) + "\n")
    else:
        for each in replica_readiness:
            said = f"not ready: {'; '.join(each.problems)}" if each.problems else "ready"
            console.out(f"{each.address}: {said}\n" if each.address else f"{said}\n")
    return 0 if all(each.ready for each in replica_readiness) else 1


def _is_ready(address: str, places: DataPaths) -> bool:
    context = trusting(file=places.pki / "ca.crt")
    try:
        with urllib.request.urlopen(f"{address}/readyz", timeout=5, context=context) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
