"""Compares the lives of KubeVirt's feature gates (src/paddock/kubevirt/kinds/gates.py) with the sources of each release.

`python -m tools.kubevirtgates` reads the modules that `tools/kubevirtreleases.py` reads, and prints what differs. With a new release, raise
`RELEASES` there; what this prints then is what to change here. Whether admission asks for a gate at all is beyond what a table of gates
can tell: where it does not, `UNASKED` says so.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from paddock.kubevirt.kinds.gates import GATES, ClusterGates
from tools import kubevirtreleases

_CONFIGURATION = "pkg/virt-config"
_NAME = re.compile(r'^\s*(?:const\s+)?(\w+)\s*=\s*"([^"]+)"', re.M)
_REGISTERED = re.compile(r"RegisterFeatureGate\(FeatureGate\{\s*Name:\s*(\w+),\s*State:\s*(\w+)")
_REGISTRATION = "RegisterFeatureGate(FeatureGate{"
# Until this release the gates that must be named are plain constants of one file, without a state.
_LAST_PLAIN = 4
_FIRST_BETA_ON = 9
_GONE = "Discontinued"
# Gates and releases that have them, and whose admission takes the feature without asking for them.
UNASKED = {
    # Devices by a claim are checked for the gate from 1.8 on.
    *(("HostDevicesWithDRA", release) for release in (6, 7)),
    # Deprecated: machines name their architecture, and nobody asks.
    *(("MultiArchitecture", release) for release in (8, 9)),
    # A setting of the KubeVirt object or the name in its list, although the gate is called generally available.
    ("PersistentReservation", 9),
}
States = Mapping[str, str]


def states(root: Path, release: int) -> dict[str, str]:
    """Return the state of each gate of a release; that of a plain constant is Alpha, which must be named, too."""
    folder = root / _CONFIGURATION
    texts = [each.read_text() for each in sorted(folder.rglob("*.go")) if not each.name.endswith("_test.go")]
    names = {constant: name for text in texts for constant, name in _NAME.findall(text)}
    plain = _NAME.findall((folder / "feature-gates.go").read_text()) if release <= _LAST_PLAIN else []
    registered = [found for text in texts for found in _REGISTERED.findall(text)]
    count = sum(text.count(_REGISTRATION) for text in texts)
    if len(registered) != count or not (registered or plain):
        raise ValueError(f"1.{release} registers {count} gates, and {len(registered)} of them can be read")
    return {name: "Alpha" for _, name in plain} | {names[constant]: state for constant, state in registered}


def differences(by_release: Mapping[int, States]) -> Iterator[str]:
    """Yield what Paddock holds of gates and a release does not."""
    for release, known in by_release.items():
        for gate in GATES:
            if (gate, release) not in UNASKED:
                yield from (f"1.{release}: {gate} {each}" for each in _of_gate(gate, release, known))


def _of_gate(gate: str, release: int, known: States) -> Iterator[str]:
    life, state = GATES[gate], known.get(gate, "")
    if not state:
        if release >= life.since:
            yield "is asked for, and the release does not know it"
        return
    if release < life.since:
        yield f"is not asked for, and is {state}"
        return
    named, refused = frozenset({gate}), ClusterGates(release, off=frozenset({gate})).has(gate)
    by_itself = state == "GA" or (state == "Beta" and release >= _FIRST_BETA_ON)
    if ClusterGates(release).has(gate) != by_itself or refused != (state == "GA"):
        yield f"is {state}, and has another default or cannot be turned off as there"
    if ClusterGates(release, on=named).has(gate) == (state == _GONE):
        yield f"is {state}, and naming it has another effect"
    older, _ = life.before
    counts = known.get(older, _GONE) != _GONE or by_itself
    if older and ClusterGates(release, on=frozenset({older})).has(gate) != counts:
        yield f"has {older} as its older name, which is {known.get(older, 'unknown')}"


def downloaded() -> dict[int, dict[str, str]]:
    """Return the states of the gates of all releases."""
    return {release: states(source.root, release) for release, source in kubevirtreleases.downloaded().items()}


if __name__ == "__main__":
    lines = list(differences(downloaded()))
    sys.stdout.writelines(f"{each}\n" for each in lines)
    sys.exit(bool(lines))
