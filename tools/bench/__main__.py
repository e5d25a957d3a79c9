"""``python -m tools.bench [--only PART] [--quick] [--write] [--no-reference]``: measures; figures beside targets."""

import argparse
import asyncio
import platform
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.reference import build
from tools.bench import (
    cluster,
    comparison,
    consoles,
    demo,
    flood,
    fronts,
    guests,
    hosting,
    idle,
    imports,
    networks,
    offline,
    results,
    returning,
    rigaud,
    simulated,
    userland,
    waits,
)
from tools.bench.client import LoadFailed
from tools.bench.loads import Size
from tools.bench.offline import Figure

# It takes a whole Kubernetes, and root: only on request.
_ON_REQUEST = "cluster"
# They need QEMU.
_GUESTS = ("guests", "host", "idle", "userland", "demo", "cluster")


def _parts(options: argparse.Namespace, folder: Path) -> dict[str, Callable[[], list[Figure] | str]]:
    """What each part measures; a text says why there is nothing."""
    quick = options.quick
    return {
        "commands": lambda: offline.measure(folder),
        "server": lambda: _compare(options, folder),
        "flood": lambda: flood.measure(folder, quick=quick),
        "returning": lambda: returning.measure(folder, quick=quick),
        "guests": lambda: guests.measure(folder, quick=quick),
        "host": lambda: asyncio.run(hosting.measure(folder, quick=quick)),
        "idle": lambda: asyncio.run(idle.measure(folder, quick=quick)),
        "userland": lambda: asyncio.run(userland.measure(folder, quick=quick)),
        "fronts": lambda: fronts.measure(folder, quick=quick),
        "virtrigaud": lambda: rigaud.measure(quick=quick),
        "imports": lambda: imports.measure(folder),
        "waits": lambda: waits.measure(folder),
        "console": lambda: consoles.measure(folder, quick=quick),
        "demo": lambda: demo.measure(folder),
        "simulated": lambda: simulated.measure(folder, quick=quick),
        "networks": lambda: networks.measure(folder, quick=quick),
        _ON_REQUEST: lambda: cluster.measure(folder, _say, quick=quick),
    }


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    # Guests that were started end with whoever measures.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="paddock-bench-") as folder:
        try:
            for name, measure in _parts(options, Path(folder)).items():
                if options.only == name or (options.only is None and name != _ON_REQUEST):
                    _measure(name, measure, options)
        except (offline.BenchError, LoadFailed) as error:
            print(f"bench: {error}", file=sys.stderr)
            return 1
    return 0


def _measure(name: str, measure: Callable[[], list[Figure] | str], options: argparse.Namespace) -> None:
    """Measure a part, show it, and keep it."""
    if name in _GUESTS and shutil.which("qemu-system-x86_64") is None:
        _say(f"no QEMU: {name} is left out")
        return
    with results.circumstances() as about:
        found = measure()
    if isinstance(found, str):
        _say(found)
        return
    _say(f"written to {results.save(name, found, about, quick=options.quick)}")
    print(f"\n{name}: {about.host}; code {about.code}; others used {about.load} processors{'' if about.is_good else ': disturbed'}")
    print(offline.table(results.rows(name, found, quick=options.quick)))
    if options.write:
        if options.quick and not results.is_quick(name):
            raise offline.BenchError("not written: the figures of `results.toml` are those of the whole load; measure without --quick")
        results.write(name, found, about)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.bench", description=__doc__)
    parser.add_argument(
        "--only",
        choices=tuple(_parts(argparse.Namespace(quick=False), Path())),
        help="only this part: the commands, the API server, a new client of it beside thousands of busy ones, memory after "
        "crowds, the guests, a whole host, the server beside idle guests, from the manifest to the guest, the front doors, "
        "VirtRigaud's machines, imports, what a person waits for, the web console, the demonstration, simulated guests, or one machine "
        "beside a cluster with KubeVirt (only when asked for; needs root)",
    )
    parser.add_argument("--quick", action="store_true", help="smaller loads: 2,000 objects and 200 watchers for the server")
    parser.add_argument("--write", action="store_true", help="put the figures into tools/bench/results.toml; then run `make gen`")
    parser.add_argument("--no-reference", action="store_true", help="measure Paddock alone")
    parser.add_argument("--runs", type=int, default=1, metavar="N", help="measure the server N times; print the median and the range")
    parser.add_argument("--json", type=Path, help="also write everything that was measured of the server to this file")
    return parser


def _compare(options: argparse.Namespace, folder: Path) -> list[Figure]:
    size = Size.quick() if options.quick else Size()
    binaries = None if options.no_reference else _binaries()
    runs = [_compared(binaries, folder / str(number), size) for number in range(options.runs)]
    print(f"\n{size.objects} objects of 2.3 KB, {size.watchers} watchers, TLS; {platform.python_version()}")
    print(comparison.text(comparison.rows(runs)))
    if options.json is not None:
        comparison.save(options.json, runs)
    return comparison.figures(runs)


def _compared(binaries: build.Binaries | None, folder: Path, size: Size) -> comparison.Run:
    folder.mkdir()
    ours = comparison.measure_paddock(folder, size, _say)
    return comparison.Run(ours, {} if binaries is None else comparison.measure_reference(binaries, folder / "reference", size, _say))


def _binaries() -> build.Binaries | None:
    """kube-apiserver and etcd, where they are built or can be built."""
    built = (build.cache_root() / "oracle" / build.recipe_key()).is_dir()
    if not built and shutil.which("go") is None:
        _say("no Go: kube-apiserver is left out")
        return None
    return build.ensure(_say)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
