"""``python -m tools.bench.maxima``: grows servers in batches of machines until something takes too long, and says what broke first."""

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from tests.reference import build
from tools.bench import results
from tools.bench.maxima import living, stored
from tools.bench.maxima.stages import Limit, Stage, first_break, misses, table
from tools.bench.programs import KINE, Paddock, Reference

_SIZES = (1_000, 10_000, 30_000, 100_000)
# A node of the simulation has 4 TiB and 128 processors, and at most 110 instances as a kubelet has.
_NODES = 1_000
_PARTS = ("stored", "living", "etcd", "kine")


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    # The servers end with whoever measures.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sizes = [each for each in options.sizes if each <= options.most]
    with tempfile.TemporaryDirectory(prefix="paddock-maxima-") as folder:
        for part in options.part or _PARTS:
            with results.circumstances() as about:
                stages = _grown(part, Path(folder) / part, sizes, options.nodes)
            limits = living.LIMITS if part == "living" else stored.LIMITS
            print(f"\n{part}: {about.host}; code {about.code}; others used {about.load} processors{'' if about.is_good else ': disturbed'}")
            print(_report(stages, limits))
            results.FOLDER.mkdir(parents=True, exist_ok=True)
            path = results.FOLDER / f"maxima-{part}.json"
            path.write_text(json.dumps({**asdict(about), "stages": [asdict(each) for each in stages]}, indent=2) + "\n")
            _say(f"written to {path}")
    return 0


def _grown(part: str, folder: Path, sizes: Sequence[int], nodes: int) -> list[Stage]:
    folder.mkdir()
    if part == "living":
        with closing(living.serve(folder, nodes)) as server:
            return living.grow(server, sizes, _say)
    with closing(_server(part, folder)) as store:
        stored.prepared(store)
        return stored.grow(store, sizes, _say)


def _server(part: str, folder: Path) -> Paddock | Reference:
    if part == "stored":
        return Paddock(folder)
    return Reference(build.ensure(_say), folder, build.built(KINE, _say) / "kine" if part == "kine" else None)


def _report(stages: Sequence[Stage], limits: Mapping[str, Limit]) -> str:
    broken = first_break(stages, limits)
    lines = [table(stages, limits), "", str(broken) if broken is not None else "nothing broke"]
    return "\n".join([*lines, *(f"missed: {each}" for each in misses(stages[-1], limits))])


def _say(text: str) -> None:
    print(f"maxima: {text}", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.bench.maxima", description=__doc__)
    parser.add_argument(
        "part",
        nargs="*",
        choices=[*_PARTS, []],
        help="stored: Paddock stores machines; living: simulated machines run; etcd, kine: kube-apiserver stores them "
        "in etcd, or in SQLite as k3s does (needs Go)",
    )
    parser.add_argument("--most", type=int, default=_SIZES[-1], metavar="N", help="no more machines than that")
    parser.add_argument("--sizes", type=int, nargs="+", default=_SIZES, metavar="N", help="the sizes of the batches' ends")
    parser.add_argument("--nodes", type=int, default=_NODES, metavar="N", help="simulated nodes (default: %(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
