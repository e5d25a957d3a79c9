"""docs/reference/homes.md: what users see of a machine on `paddock up` or on a cluster, but not on both, and why.

The list is that of the test which compares both (`tests/reference/cluster/test_homes.py`).
"""

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, get_args

import msgspec

from paddock.kubernetes.schema.generate import reference

KNOWN = Path(__file__).resolve().parents[2] / "tests" / "reference" / "cluster" / "homes.toml"
Step = Literal["created", "running", "changed", "stopped", "started again", "deleted"]
Dialect = Literal["stakater", "vitistack", "kubermatic", "virtrigaud"]
_DIALECTS: Sequence[Dialect] = get_args(Dialect)
_WIDTH = 140
_WHEN = (
    ({"created", "running", "changed", "stopped", "started again"}, "always"),
    ({"running", "changed", "started again"}, "while it runs"),
    ({"created", "stopped"}, "while it is off"),
    ({"running", "changed", "stopped", "started again"}, "from its first start"),
)
_ABOUT = f"""# The same machine in both homes

{reference.HEADER}

A manifest makes the same machine on `paddock up` and, through [`paddock operator`](../cluster/operator.md), on a cluster with
KubeVirt. This page lists every line that a user sees in one of these homes and not in the other.

A test plays one script in both. It creates the example of each dialect switched off, starts it, waits until the guest's agent
answers and the machine has an address, changes it, stops it, starts it again, and deletes it. At rest after each step, the test
compares line by line: `kubectl get -o wide`, every condition with its message, and every field of `status`. It does so for the
user's own object and for what is made of it: VirtualMachine, VirtualMachineInstance, DataVolumes and claims. The cluster is
[the reference cluster](../design/0025-reference-cluster.md) with Kubernetes 1.36, KubeVirt 1.9, and a stand-in for CDI.
**Any other line that differs fails the test**, and so does anything that is left in either home after the deletion.

The test does not compare ages, times, UIDs, revisions, addresses, MAC addresses, names of PersistentVolumes, and VirtRigaud's
`status.provider.guestOS`, which follows minutes later. `*` stands for any text, and an empty cell for a line that does not exist
there. The [last section](#disks-that-go-wrong) says how Paddock and CDI treat disks that go wrong, which is not part of the script.
"""


class KnownDifference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line that differs between `paddock up` and a cluster; `*` stands for any text in all three strings."""

    dialects: tuple[Dialect, ...]
    steps: tuple[Step, ...]
    line: str
    embedded: str
    cluster: str


class Reason(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Differences that have one reason."""

    title: str
    why: str
    difference: tuple[KnownDifference, ...]


class DiskBehaviour(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A disk that Paddock treats in one way and CDI in another."""

    what: str
    embedded: str
    cluster: str


class DiskBehaviours(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The disks that are treated differently, and what a user does about it."""

    title: str
    why: str
    behaviour: tuple[DiskBehaviour, ...]


class _Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    reason: tuple[Reason, ...]
    disks: DiskBehaviours


def _known() -> _Known:
    return msgspec.toml.decode(KNOWN.read_bytes(), type=_Known)


def reasons() -> Sequence[Reason]:
    """Return the differences that are known."""
    return _known().reason


def page() -> str:
    """Return the page."""
    lines = [_ABOUT, *(line for each in reasons() for line in _section(each)), *_disks(_known().disks)]
    return "\n".join(lines).rstrip() + "\n"


def _disks(disks: DiskBehaviours) -> Iterator[str]:
    yield f"## {disks.title}\n"
    yield f"{textwrap.fill(disks.why, _WIDTH, break_on_hyphens=False)}\n"
    yield "| what | `paddock up` | a cluster with CDI 1.66 |\n| --- | --- | --- |"
    for each in disks.behaviour:
        yield f"| {each.what} | {each.embedded} | {each.cluster} |"
    yield ""


def _section(reason: Reason) -> Iterator[str]:
    yield f"## {reason.title}\n"
    yield f"{textwrap.fill(reason.why, _WIDTH, break_on_hyphens=False)}\n"
    yield "| line | `paddock up` | cluster | when | dialects |\n| --- | --- | --- | --- | --- |"
    for each in reason.difference:
        cells = (_code(each.line), _code(each.embedded), _code(each.cluster), _when(each.steps), _who(each))
        yield f"| {' | '.join(cells)} |"
    yield ""


def _code(text: str) -> str:
    """Return a text as code in a cell of a table, where only `|` needs an escape."""
    escaped = text.replace("|", "\\|")
    return f"`{escaped}`" if text else ""


def _when(steps: Sequence[Step]) -> str:
    return next((words for those, words in _WHEN if those == set(steps)), ", ".join(steps))


def _who(difference: KnownDifference) -> str:
    return "all" if set(difference.dialects) == set(_DIALECTS) else ", ".join(difference.dialects)
