"""Parts of the page that a server lacks, whoever asks: kinds that are not installed, and what only Paddock's own server has. Pure."""

from collections.abc import Collection, Iterator, Mapping

import msgspec

from paddock.base.jsondata import Data
from paddock.fleet import kinds
from paddock.kubernetes import catalog
from paddock.kubernetes.client.target import Target
from paddock.web.answers.rows import WebMissing
from paddock.web.live import kindtable, topics
from paddock.web.live.machinerows import MACHINE_TARGETS
from paddock.web.rights import SUBRESOURCES

_METRICS = "metrics.k8s.io"
# Every server has them.
_ALWAYS = frozenset(("usage", "tasks", "events"))
# A kind that belongs to a dialect: its machines, or where these are KubeVirt's, its images.
_DIALECTS: Mapping[str, Collection[str]] = {
    name: tuple(each.qualified for each in kinds.MACHINES if each.dialect == name)[:1] or tuple(each.qualified for each in kindtable.IMAGES)
    for name in catalog.DIALECTS
}
NO_SUSPENSION = "KubeVirt cannot suspend machines; Paddock's own server can"
_NO_MACHINES = (
    "the server has no kind of machines. Check that the kubeconfig names the right server, install KubeVirt in the cluster, "
    "or start Paddock's own server: paddock up"
)
_OF_OWN_SERVER = {
    "history": "only Paddock's own server keeps the use of machines: charts begin when the page is opened",
    "checks": "only the host of Paddock's own server is checked",
    "suspend": NO_SUSPENSION,
}


class ServedParts(msgspec.Struct, frozen=True):
    """The offer of a server. `kinds` are `plural.group` of what it serves, in the version that the console reads."""

    own: bool
    groups: Collection[str]
    kinds: Collection[str]

    def dialects(self) -> list[str]:
        """Return the dialects whose kinds the server has."""
        return [dialect for dialect, wanted in _DIALECTS.items() if any(each in self.kinds for each in wanted)]

    def missing(self) -> Iterator[WebMissing]:
        """Yield the missing parts, each once."""
        there = self.dialects()
        for dialect, wanted in _DIALECTS.items():
            if dialect not in there:
                yield WebMissing(what=dialect, why=f"the server has no {' and no '.join(wanted)}")
        if not any(each.qualified in self.kinds for each in kinds.MACHINES):
            yield from (WebMissing(what=each, why=_NO_MACHINES) for each in ("list", "create"))
        if SUBRESOURCES not in self.groups:
            why = f"the server does not serve {SUBRESOURCES}: KubeVirt's virt-api is not there"
            yield from (WebMissing(what=each, why=why) for each in ("power", "console", "vnc"))
        yield from self._of_kinds()
        if not self.own:
            yield from (WebMissing(what=each, why=why) for each, why in _OF_OWN_SERVER.items())
        if not self.own and _METRICS not in self.groups:
            yield WebMissing(what="usage", why=f"the server does not serve {_METRICS}: install metrics-server in the cluster")

    def _of_kinds(self) -> Iterator[WebMissing]:
        for what, wanted in _of_parts().items():
            if not any(each.qualified in self.kinds for each in wanted):
                yield WebMissing(what=what, why=f"the server has none of the kinds: {', '.join(each.qualified for each in wanted)}")


def _of_parts() -> Mapping[str, Collection[Target[Data]]]:
    """Return the kinds of each topic, and of each verb that makes an object."""
    found: dict[str, Collection[Target[Data]]] = {"snapshot": (kindtable.SNAPSHOTS, *kindtable.OWN_SNAPSHOTS)}
    found["clone"] = (kindtable.CLONES, *kindtable.OWN_CLONES)
    for topic in topics.TOPICS:
        if topic not in _ALWAYS and topic != "machines":
            found[topic] = tuple(each for each in topics.source(topic).kinds if each not in MACHINE_TARGETS)
    return found
