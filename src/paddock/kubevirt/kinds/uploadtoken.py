"""`upload.cdi.kubevirt.io/v1beta1 UploadTokenRequest`: created and answered, never stored (docs/spec/kubevirt.md 5.8)."""

from typing import Annotated

from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema.field import Field, Object
from paddock.kubernetes.schema.kind import Kind, Version


class UploadTokenRequestSpec(Object):
    """The target of an upload."""

    pvcName: Annotated[str, Field("Name of the claim.", required=True, format="dns1123-subdomain", max_length=253)] = ""


class UploadTokenRequestStatus(Object):
    """The answer."""

    token: Annotated[str | None, Field("The token, valid for five minutes.", secret=True)] = None


class UploadTokenRequest(Resource):
    """Asks for a token with which an image can be uploaded to a claim."""

    spec: Annotated[UploadTokenRequestSpec, Field("What is uploaded to.", required=True)] = UploadTokenRequestSpec()
    status: Annotated[UploadTokenRequestStatus | None, Field("The answer.")] = None


KINDS = (
    Kind(
        group="upload.cdi.kubevirt.io",
        kind="UploadTokenRequest",
        plural="uploadtokenrequests",
        singular="uploadtokenrequest",
        short_names=("utr", "utrs"),
        cls=UploadTokenRequest,
        dialect="kubevirt",
        versions=(Version("v1alpha1", storage=False), Version("v1beta1")),
        columns=(),
        status=False,
        stored=False,
    ),
)
