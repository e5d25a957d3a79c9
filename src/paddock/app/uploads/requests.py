"""UploadTokenRequest: makes a token, and is kept nowhere."""

import msgspec
import orjson

from paddock.app.uploads.tokens import UploadTokens
from paddock.kubernetes.meta import failure
from paddock.kubevirt.kinds.uploadtoken import UploadTokenRequest
from paddock.server import bodies
from paddock.server.context import RequestContext, ServerParts
from paddock.server.edge.http import HttpResponse
from paddock.server.representation import answer, form_of
from paddock.server.store.contract import StoreKey
from paddock.server.verbs.options import write_options

GROUP, PLURAL = "upload.cdi.kubevirt.io", "uploadtokenrequests"


class TokenRequests:
    """Answers UploadTokenRequests. Who may make one may upload to the claim that it names, in the same namespace."""

    def __init__(self, parts: ServerParts, tokens: UploadTokens) -> None:
        self._parts = parts
        self._tokens = tokens

    async def create(self, call: RequestContext) -> HttpResponse:
        """A token for a claim that is there."""
        said, resource, namespace = bodies.read_object(call.request).data, call.resource, call.route.namespace
        said = {"apiVersion": resource.api_version, "kind": resource.kind, **said}
        decoded = resource.pipeline.decode({**said, "metadata": said.get("metadata") or {}})
        wrong = (*decoded.broken, *decoded.wrong, *(() if decoded.broken else resource.pipeline.validate(decoded.data, None)))
        if wrong:
            raise failure.invalid(resource.about_kind(""), wrong)
        name = msgspec.convert(decoded.data, UploadTokenRequest).spec.pvcName
        record = self._parts.store.get(StoreKey("persistentvolumeclaims", namespace, name))
        if record is None:
            raise failure.not_found(failure.FailureTarget(name, "", "persistentvolumeclaims"))
        uid = orjson.loads(record.value)["metadata"]["uid"]
        dry = write_options(call, operation="Create").dry_run
        token = "" if dry else self._tokens.issue(namespace, name, uid, self._parts.clock.seconds())
        metadata = {"creationTimestamp": self._parts.clock.now(), **(said.get("metadata") or {}), "namespace": namespace}
        made = {**decoded.data, "metadata": metadata, "status": {"token": token}}
        return answer(form_of(call.request, transforms=()), orjson.dumps(made), 201)
