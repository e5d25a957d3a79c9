"""The place where machines will run: the option --target, and the facts that a cluster's KubeVirt object gives."""

import argparse

from paddock.base.errors import Terminal
from paddock.cli import arguments
from paddock.cli.console import Console
from paddock.fleet.documents.objects import InputReader
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.kinds import gates

EMBEDDED, CLUSTER = "embedded", "cluster"
_LISTED = "kubectl get kubevirt -A -o yaml"


def add_target(options: arguments.Container) -> None:
    arguments.add_choice(
        options,
        ("--target",),
        (EMBEDDED, CLUSTER),
        "Where the machines run: Paddock's own engine, or a KubeVirt cluster (default: embedded)",
        EMBEDDED,
    )
    text = f"KubeVirt object of the cluster, as `{_LISTED}` prints it, for its release and feature gates; implies --target cluster"
    options.add_argument("--kubevirt", metavar="FILE", help=text)


def settings(parsed: argparse.Namespace, console: Console) -> AdmissionSettings:
    """Return the settings that the options ask for. Raises `PaddockError` for a file without a KubeVirt object."""
    if parsed.kubevirt is None:
        return AdmissionSettings(target=parsed.target)
    subjects = InputReader(console, AdmissionSettings()).subjects([parsed.kubevirt])
    found = gates.of_installations([each.data for each in subjects if each.document.data.get("kind") == "KubeVirt"])
    if found is None:
        raise Terminal(f"{parsed.kubevirt} has no KubeVirt object, or several", fix=f"write it with `{_LISTED}`")
    return AdmissionSettings(
        target=CLUSTER,
        gates=found.on,
        gates_off=found.off,
        kubevirt_release=found.release,
        architecture=found.architecture,
    )
