"""Leases: who leads, and until when (`coordination.k8s.io/v1`)."""

from typing import Annotated

from paddock.apiserver.builtin.times import settle
from paddock.apiserver.resources.strategy import Data, Strategy, WriteContext
from paddock.meta.objects import Resource
from paddock.schema.field import Field, Object, Time
from paddock.schema.kind import AGE, Column, Kind

GROUP = "coordination.k8s.io"


class LeaseSpec(Object):
    """Who holds the lease, and since when."""

    holderIdentity: Annotated[str | None, Field("Who holds it.")] = None
    leaseDurationSeconds: Annotated[int | None, Field("Seconds after the last renewal until it may be taken.", ge=1, bits=32)] = None
    acquireTime: Annotated[Time | None, Field("When the holder got it.")] = None
    renewTime: Annotated[Time | None, Field("When the holder last renewed it.")] = None
    leaseTransitions: Annotated[int | None, Field("How often it changed hands.", ge=0, bits=32)] = None
    strategy: Annotated[str | None, Field("How the next holder is chosen.")] = None
    preferredHolder: Annotated[str | None, Field("Who should get it next.")] = None


class Lease(Resource):
    """A claim to lead that has to be renewed."""

    spec: Annotated[LeaseSpec | None, Field("Who holds it, and since when.")] = None


class LeaseStrategy(Strategy):
    """Times have six fractional digits, as clients compare them."""

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """Times in one form."""
        return _settled(new)

    def prepare_update(self, new: Data, old: Data, context: WriteContext) -> Data:
        """Times in one form."""
        return _settled(new)


def _settled(new: Data) -> Data:
    settle(new.get("spec"), micro=("acquireTime", "renewTime"))
    return new


KINDS = (
    Kind(
        group=GROUP,
        kind="Lease",
        plural="leases",
        singular="lease",
        cls=Lease,
        dialect="core",
        columns=(Column("Holder", ".spec.holderIdentity"), AGE),
        status=False,
        builtin=True,
    ),
)
