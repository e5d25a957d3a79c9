"""Starts and ends a Kubernetes cluster on this machine: `python -m tests.reference.cluster up|down`.

`up` builds what is missing (Go, minutes to an hour once), installs a Debian root with mmdebstrap and returns when the node is ready.
It needs root. `--with-kubevirt` installs KubeVirt, also on a node that runs, and a stand-in for CDI; `--with-cdi` builds and installs CDI
itself in its place. `down` ends everything by the process that holds the node.
"""

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from paddock.base.errors import Terminal
from tests.reference import build
from tests.reference.cluster import base, cdi, control, kubevirt, nameserver, namespace, storage, uploads
from tests.reference.recipes import CONTROLLERS, NODE, PAUSE

DIRECTORY = Path("/var/tmp/paddock-cluster")
_OF_NODE = (build.ORACLE, CONTROLLERS, NODE)
_NEEDS = ("mmdebstrap", "gcc", "unshare", "nsenter", "ip", "nice", "go")


def missing() -> str:
    """Return the reason why no cluster can run here, or nothing."""
    if os.geteuid():
        return "only root can make a node"
    absent = [name for name in _NEEDS if shutil.which(name) is None]
    if absent:
        return f"not on PATH: {', '.join(absent)}"
    if not any(Path(folder, "libvirt/libvirt.h").exists() for folder in ("/usr/include", "/usr/local/include")):
        return "the headers of libvirt are missing (Debian: libvirt-dev)"
    return ""


@dataclass(frozen=True)
class Wanted:
    """The parts that a cluster is to have."""

    kubevirt: bool = False
    # itself, and not its stand-in; only with KubeVirt
    cdi: bool = False
    weight: int = namespace.WEIGHT


def up(directory: Path, say: Callable[[str], None], wanted: Wanted) -> namespace.Machine:
    """Start a cluster in a directory, or install KubeVirt on the one that runs there."""
    machine = namespace.found(directory)
    if machine is not None and (not wanted.kubevirt or kubevirt.is_installed(machine)):
        what = f"a cluster {'with KubeVirt ' if wanted.kubevirt else ''}runs in {directory} already"
        more = "" if wanted.kubevirt else ", or install KubeVirt on it with `make cluster KUBEVIRT=1`"
        raise Terminal(what, fix=f"end it with `make cluster-down`{more}")
    if wanted.cdi:
        cdi.check()
    of_kubevirt = (*kubevirt.recipes(), *(cdi.RECIPES if wanted.cdi else ()))
    _announce(say, (*((*_OF_NODE, PAUSE) if machine is None else ()), *(of_kubevirt if wanted.kubevirt else ())))
    root, tar = base.made(say)
    if machine is None:
        machine = _node(directory, root, say, wanted.weight)
    if wanted.kubevirt:
        for recipe in kubevirt.recipes():
            build.built(recipe, say)
        _add_kubevirt(machine, tar, say, cdi.build(root, say) if wanted.cdi else {})
    return machine


def _announce(say: Callable[[str], None], recipes: Sequence[build.Buildable]) -> None:
    if missing_programs := build.missing(recipes):
        say(f"{len(missing_programs)} programs are to be built first, each for a minute or more, once: {', '.join(missing_programs)}")


def _node(directory: Path, root: Path, say: Callable[[str], None], weight: int) -> namespace.Machine:
    programs = {path.name: path for recipe in _OF_NODE for path in build.built(recipe, say).iterdir()}
    began = time.monotonic()
    machine = namespace.begin(directory, root, programs, weight)
    control.kubernetes(machine)
    nameserver.install(machine)
    kubevirt.load_pause(machine)
    say(f"the node is ready after {time.monotonic() - began:.0f} s")
    return machine


def _add_kubevirt(machine: namespace.Machine, tar: Path, say: Callable[[str], None], of_cdi: Mapping[str, Path]) -> None:
    """Install KubeVirt, with CDI where there are programs of it."""
    began = time.monotonic()

    def done(what: str) -> None:
        say(f"{what} after {time.monotonic() - began:.0f} s")

    # virt-controller would start again if it found CDI later.
    storage.install(machine, stand_in=not of_cdi)
    if of_cdi:
        cdi.load(machine, tar, of_cdi)
        cdi.install(machine, of_cdi)
        done("CDI is deployed")
    else:
        uploads.install(machine)
        say("a stand-in for CDI fills the disks; CDI=1 builds CDI itself from a clone of its source (docs/cluster/local-cluster.md)")
    kubevirt.load(machine, tar)
    done("the images are there")
    kubevirt.install(machine)
    done("KubeVirt is deployed")


def main() -> int:
    """Run one command."""
    parser = argparse.ArgumentParser(prog="python -m tests.reference.cluster", description=__doc__)
    parser.add_argument("command", choices=("up", "down"))
    parser.add_argument("--with-kubevirt", action="store_true", help="install KubeVirt, and return when it is deployed")
    parser.add_argument("--with-cdi", action="store_true", help="install KubeVirt with CDI itself, built from a clone of its source")
    weight = f"share of the processors when others are busy; one busy process of the host has 1024 (default: {namespace.WEIGHT})"
    parser.add_argument("--weight", type=int, default=namespace.WEIGHT, metavar="N", help=weight)
    parser.add_argument("--dir", type=Path, default=DIRECTORY, metavar="DIR", help=f"the cluster's directory (default: {DIRECTORY})")
    parsed = parser.parse_args()
    try:
        if parsed.command == "down":
            namespace.end(parsed.dir)
            return 0
        if reason := missing():
            raise Terminal("cannot start a cluster", why=reason)
        wanted = Wanted(parsed.with_kubevirt or parsed.with_cdi, parsed.with_cdi, parsed.weight)
        machine = up(parsed.dir, lambda text: print(text, flush=True), wanted)
    except Terminal as problem:
        print(problem, file=sys.stderr)
        return 1
    print("KUBECONFIG:", control.access(machine).kubeconfig)
    print("kubectl:", " ".join(machine.words(["kubectl"], ["KUBECONFIG=/cluster/admin.kubeconfig"])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
