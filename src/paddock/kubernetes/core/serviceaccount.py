"""`v1 ServiceAccount`."""

from typing import Annotated

from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema.field import Field, Freeform, Object
from paddock.kubernetes.schema.kind import AGE, Kind


class PullSecret(Object):
    """A Secret for fetching images; servers take any name here."""

    name: Annotated[str | None, Field("Name of the Secret.")] = None


class ServiceAccount(Resource):
    """An identity for what runs in the cluster."""

    secrets: Annotated[list[Freeform] | None, Field("Secrets that may be used.")] = None
    imagePullSecrets: Annotated[list[PullSecret] | None, Field("Secrets for fetching images.")] = None
    automountServiceAccountToken: Annotated[bool | None, Field("Whether the token is mounted by itself.")] = None


KINDS = (
    Kind(
        group="",
        kind="ServiceAccount",
        plural="serviceaccounts",
        singular="serviceaccount",
        short_names=("sa",),
        cls=ServiceAccount,
        dialect="core",
        columns=(AGE,),
        status=False,
        builtin=True,
    ),
)
