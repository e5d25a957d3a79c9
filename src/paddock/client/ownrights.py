"""The rights of a client's own user, as the API server judges them."""

from collections.abc import Mapping

import orjson

from paddock.client.client import Client

_REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


async def may(client: Client, attributes: Mapping[str, str]) -> bool:
    """Return whether the user has a right: verb, group, resource, subresource and namespace, as a SelfSubjectAccessReview names them."""
    head = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    body = orjson.dumps({**head, "spec": {"resourceAttributes": attributes}})
    answer = orjson.loads(await client.request("POST", _REVIEW, body=body))
    return bool((answer.get("status") or {}).get("allowed"))
