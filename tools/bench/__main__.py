"""``python -m tools.bench [--only PART] [--quick] [--no-reference]``: measures; figures beside targets."""

import argparse
import asyncio
import os
import platform
import shutil
import signal
import sys
import tempfile
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
    rigaud,
    simulated,
    userland,
    waits,
)
from tools.bench.client import LoadFailed
from tools.bench.loads import Size

PARTS = (
    "commands",
    "server",
    "flood",
    "guests",
    "host",
    "idle",
    "userland",
    "fronts",
    "virtrigaud",
    "imports",
    "waits",
    "console",
    "demo",
    "simulated",
    "networks",
    "cluster",
)


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    # Guests that were started end with whoever measures.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="paddock-bench-") as folder:
        try:
            if options.only in (None, "commands"):
                print(offline.table(offline.measure(Path(folder))))
            if options.only in (None, "server"):
                _compare(options, Path(folder))
            if options.only in (None, "flood"):
                _told("Beside clients that do not wait", flood.measure(Path(folder), quick=options.quick))
            if options.only in (None, "guests"):
                _guests(options, Path(folder))
            if options.only in (None, "host"):
                _host(options, Path(folder))
            if options.only in (None, "idle"):
                _idle(options, Path(folder))
            if options.only in (None, "userland"):
                _userland(options, Path(folder))
            if options.only in (None, "fronts"):
                print(offline.table(fronts.measure(Path(folder), quick=options.quick)))
            if options.only in (None, "virtrigaud"):
                print(offline.table(rigaud.measure(quick=options.quick)))
            if options.only in (None, "imports"):
                print(offline.table(imports.measure(Path(folder))))
            if options.only in (None, "waits"):
                print(offline.table(waits.measure(Path(folder)), "figure (time on the wall)"))
            if options.only in (None, "console"):
                _console(options, Path(folder))
            if options.only in (None, "demo"):
                _demo(Path(folder))
            if options.only in (None, "simulated"):
                print(offline.table(simulated.measure(Path(folder), quick=options.quick), "figure (time on the wall)"))
            if options.only in (None, "networks"):
                _networks(options, Path(folder))
            # It takes a whole Kubernetes, and root: only on request.
            if options.only == "cluster":
                print(cluster.measure(Path(folder), _say, quick=options.quick))
        except (offline.BenchError, LoadFailed) as error:
            print(f"bench: {error}", file=sys.stderr)
            return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.bench", description=__doc__)
    parser.add_argument(
        "--only",
        choices=PARTS,
        help="only the commands, the API server, a new client of it beside thousands of busy ones, the guests, a whole host, the "
        "server beside idle guests, from the manifest to the guest, the front doors, VirtRigaud's machines, imports, what a person waits "
        "for, the web console, the demonstration, streams of guests with root and without, or one machine beside a cluster with KubeVirt "
        "(only when asked for; needs root)",
    )
    parser.add_argument("--quick", action="store_true", help="smaller loads for the server: 2,000 objects, 200 watchers")
    parser.add_argument("--no-reference", action="store_true", help="measure Paddock alone")
    parser.add_argument("--runs", type=int, default=1, metavar="N", help="measure the server N times; print the median and the range")
    parser.add_argument("--json", type=Path, help="also write everything that was measured to this file")
    return parser


def _compare(options: argparse.Namespace, folder: Path) -> None:
    size = Size.quick() if options.quick else Size()
    binaries = None if options.no_reference else _binaries()
    runs = [_compared(binaries, folder / str(number), size) for number in range(options.runs)]
    load, _, _ = os.getloadavg()
    print(f"\n{size.objects} objects of 2.3 KB, {size.watchers} watchers, TLS; {platform.python_version()}, load {load:.1f}")
    print(comparison.text(comparison.rows(runs)))
    if options.json is not None:
        comparison.save(options.json, runs)


def _compared(binaries: build.Binaries | None, folder: Path, size: Size) -> comparison.Run:
    folder.mkdir()
    ours = comparison.measure_paddock(folder, size, _say)
    return comparison.Run(ours, {} if binaries is None else comparison.measure_reference(binaries, folder / "reference", size, _say))


def _guests(options: argparse.Namespace, folder: Path) -> None:
    if shutil.which("qemu-system-x86_64") is None:
        _say("no QEMU: guests are left out")
        return
    samples = guests.measure(folder, quick=options.quick)
    load, _, _ = os.getloadavg()
    print(f"\nThe tiny guest, started by the engine and by hand in turns; load {load:.1f}")
    print(guests.table(samples))


def _host(options: argparse.Namespace, folder: Path) -> None:
    if shutil.which("qemu-system-x86_64") is None:
        _say("no QEMU: the host is left out")
        return
    _told("A whole host, machines stopped at their first instruction", asyncio.run(hosting.measure(folder, quick=options.quick)))


def _idle(options: argparse.Namespace, folder: Path) -> None:
    if shutil.which("qemu-system-x86_64") is None:
        _say("no QEMU: the server beside idle guests is left out")
        return
    _told("Paddock beside guests that do nothing", asyncio.run(idle.measure(folder, quick=options.quick)))


def _userland(options: argparse.Namespace, folder: Path) -> None:
    if shutil.which("qemu-system-x86_64") is None:
        _say("no QEMU: from the manifest to the guest is left out")
        return
    _told("From the manifest to a guest that answers", asyncio.run(userland.measure(folder, quick=options.quick)))


def _networks(options: argparse.Namespace, folder: Path) -> None:
    if os.geteuid() != 0 or shutil.which("qemu-system-x86_64") is None or shutil.which("pasta") is None:
        _say("networks as root and without are left out: they need root, QEMU and pasta")
        return
    _told("Streams of guests without root beside root's", networks.measure(folder, quick=options.quick))


def _console(options: argparse.Namespace, folder: Path) -> None:
    found = consoles.measure(folder, quick=options.quick)
    if isinstance(found, str):
        _say(found)
    else:
        _told("The web console", found)


def _demo(folder: Path) -> None:
    if shutil.which("qemu-system-x86_64") is None:
        _say("no QEMU: the demonstration is left out")
        return
    _told("The demonstration: seven guests of five dialects", demo.measure(folder))


def _told(title: str, figures: list[offline.Figure]) -> None:
    load, _, _ = os.getloadavg()
    print(f"\n{title}; load {load:.1f}")
    print(offline.table(figures))


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
