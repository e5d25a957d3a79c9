"""Starts and ends a Kubernetes cluster on this machine: `python -m tests.reference.cluster up|down`.

`up` builds what is missing (Go, minutes to an hour once), installs a Debian root with mmdebstrap and returns when the node is ready.
It needs root. `--with-kubevirt` installs KubeVirt, too. `down` ends everything by the process that holds the node.
"""

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

from paddock.base.errors import Terminal
from tests.reference import build
from tests.reference.cluster import base, control, kubevirt, nameserver, namespace, storage, uploads
from tests.reference.recipes import CONTROLLERS, NODE

DIRECTORY = Path("/var/tmp/paddock-cluster")
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


def up(directory: Path, say: Callable[[str], None], *, with_kubevirt: bool = False) -> namespace.Machine:
    """Start a cluster in a directory."""
    if namespace.found(directory):
        raise Terminal(f"a cluster runs in {directory} already", fix="end it with `make cluster-down`")
    root, tar = base.made(say)
    programs = _programs(say)
    began = time.monotonic()
    machine = namespace.begin(directory, root, programs)
    control.kubernetes(machine)
    nameserver.install(machine)
    kubevirt.load_pause(machine)
    say(f"the node is ready after {time.monotonic() - began:.0f} s")
    if with_kubevirt:
        # virt-controller would start again if it found CDI later.
        storage.install(machine)
        uploads.install(machine)
        kubevirt.load(machine, tar)
        say(f"the images are there after {time.monotonic() - began:.0f} s")
        kubevirt.install(machine)
        say(f"KubeVirt is deployed after {time.monotonic() - began:.0f} s")
    return machine


def _programs(say: Callable[[str], None]) -> dict[str, Path]:
    folders = [build.built(recipe, say) for recipe in (build.ORACLE, CONTROLLERS, NODE)]
    return {path.name: path for folder in folders for path in folder.iterdir()}


def main() -> int:
    """Run one command."""
    parser = argparse.ArgumentParser(prog="python -m tests.reference.cluster", description=__doc__)
    parser.add_argument("command", choices=("up", "down"))
    parser.add_argument("--with-kubevirt", action="store_true", help="install KubeVirt, and return when it is deployed")
    parser.add_argument("--dir", type=Path, default=DIRECTORY, metavar="DIR", help=f"the cluster's directory (default: {DIRECTORY})")
    parsed = parser.parse_args()
    try:
        if parsed.command == "down":
            namespace.end(parsed.dir)
            return 0
        if reason := missing():
            raise Terminal("cannot start a cluster", why=reason)
        machine = up(parsed.dir, lambda text: print(text, flush=True), with_kubevirt=parsed.with_kubevirt)
    except Terminal as problem:
        print(problem, file=sys.stderr)
        return 1
    print("KUBECONFIG:", control.access(machine).kubeconfig)
    print("kubectl:", " ".join(machine.words(["kubectl"], ["KUBECONFIG=/cluster/admin.kubeconfig"])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
