"""Pods, what is made of pods, and other kinds that nothing here would work on: clients may look for them and find none; whoever
makes one is told why there are none.

A workload that is stored and never runs would only look as if it waited, and a client that finds the resource missing shows its
user a message that explains nothing.
"""

from typing import Annotated

from paddock.apiserver.resources.strategy import Data, Strategy
from paddock.meta import failure
from paddock.meta.objects import Resource
from paddock.schema.field import Field, Freeform
from paddock.schema.kind import AGE, Column, Kind, Version

_WHY = "this server runs virtual machines, not pods; create a VirtualMachine instead"
# What `virtctl guestfs` makes is a pod with tools for disks, which the host has, too.
_GUESTFS = "libguestfs-tools"
_WHY_NO_GUESTFS = "this server runs no pods; stop the machine and look into its disk on the host, with qemu-img and guestfish"
_WHY_OF = {"CertificateSigningRequest": "this server signs no certificates on request"}


class _OfPods(Resource):
    """What none of these has: anything beyond its metadata."""

    spec: Annotated[Freeform | None, Field("What would run.")] = None
    status: Annotated[Freeform | None, Field("What was observed.")] = None


class Pod(_OfPods):
    """A group of containers; this server runs none."""


class Deployment(_OfPods):
    """Pods that are replaced step by step; this server runs none."""


class ReplicaSet(_OfPods):
    """A number of equal pods; this server runs none."""


class StatefulSet(_OfPods):
    """Pods with a name and storage of their own; this server runs none."""


class DaemonSet(_OfPods):
    """A pod on every node; this server runs none."""


class Job(_OfPods):
    """Pods that end; this server runs none."""


class CronJob(_OfPods):
    """Jobs at set times; this server runs none."""


class HorizontalPodAutoscaler(_OfPods):
    """How many pods there are, by their load; this server runs none."""


class CertificateSigningRequest(_OfPods):
    """A certificate that somebody asks for; this server signs none on request."""


class PodStrategy(Strategy):
    """None can be made."""

    def __init__(self, group: str, plural: str, why: str = _WHY) -> None:
        self._group = group
        self._plural = plural
        self._why = why

    def before_create(self, new: Data) -> None:
        """Refused, whatever admission says: webhooks and policies judge first, as they do where pods run."""
        name = new["metadata"].get("name", "")
        why = _WHY_NO_GUESTFS if self._plural == "pods" and name.startswith(_GUESTFS) else self._why
        raise failure.forbidden(failure.FailureTarget(name=name, group=self._group, kind=self._plural), why)


def _kind(group: str, cls: type[Resource], short: str = "", *columns: Column) -> Kind:
    name = cls.__name__
    return Kind(
        group=group,
        kind=name,
        plural=f"{name.lower()}s",
        cls=cls,
        dialect="core",
        short_names=(short,) if short else (),
        categories=("all",),
        columns=(*columns, AGE),
        status=True,
        builtin=True,
    )


_SIGNING = Kind(
    group="certificates.k8s.io",
    kind="CertificateSigningRequest",
    plural="certificatesigningrequests",
    cls=CertificateSigningRequest,
    dialect="core",
    short_names=("csr",),
    namespaced=False,
    columns=(AGE,),
    status=True,
    builtin=True,
)
_SCALING = Kind(
    group="autoscaling",
    kind="HorizontalPodAutoscaler",
    plural="horizontalpodautoscalers",
    cls=HorizontalPodAutoscaler,
    dialect="core",
    short_names=("hpa",),
    categories=("all",),
    versions=(Version("v2", storage=True), Version("v1")),
    columns=(AGE,),
    status=True,
    builtin=True,
)

KINDS = (
    _kind("", Pod, "po", Column("Status", ".status.phase")),
    _kind("apps", Deployment, "deploy"),
    _kind("apps", ReplicaSet, "rs"),
    _kind("apps", StatefulSet, "sts"),
    _kind("apps", DaemonSet, "ds"),
    _kind("batch", Job),
    _kind("batch", CronJob, "cj"),
    _SCALING,
    _SIGNING,
)
STRATEGIES: dict[tuple[str, str], Strategy] = {
    (kind.group, kind.kind): PodStrategy(kind.group, kind.plural, _WHY_OF.get(kind.kind, _WHY)) for kind in KINDS
}
