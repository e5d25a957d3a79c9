"""The webhooks of CDI's API server, for clusters where CDI itself is a stand-in: they refuse what CDI 1.66 refuses, in its words.

At every create and update of a DataVolume that is not being deleted, whoever writes needs the right to copy its source. A controller that
writes to such a DataVolume needs that right, too, whatever it changes.
"""

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from paddock.base import quantity
from paddock.server.security.pki import Authority
from tests.reference.client import Api, Json

HOST = "127.0.0.1"
_GROUP = "cdi.kubevirt.io"
_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_SOURCES = ("http", "s3", "gcs", "registry", "pvc", "upload", "blank", "imageio", "vddk", "snapshot")
_FILLED_OTHERWISE = ("cdi.kubevirt.io/storage.prePopulated", "cdi.kubevirt.io/storage.checkStaticVolume")
_IMAGEIO_NEEDS, _VDDK_NEEDS = ("secretRef", "diskId"), ("secretRef", "uuid", "backingFile", "thumbprint")


class Refused(Exception):
    """CDI does not take a DataVolume."""


class Missing(Refused):
    """CDI does not find something that a DataVolume names."""


# --- decisions --------------------------------------------------------------------------------------------------------------


def authorize(api: Api, request: Json) -> None:
    """Raise `Refused` unless whoever writes a DataVolume may copy its source, as `datavolume-mutate` does."""
    volume, meta = request["object"], request["object"]["metadata"]
    if meta.get("deletionTimestamp"):
        return
    namespace, notes = request["namespace"], meta.get("annotations") or {}
    try:
        source = _cloned(api, volume["spec"], namespace)
        if source is None:
            return
        origin = source.get("namespace") or namespace
        if not api.request("GET", f"/api/v1/namespaces/{origin}").ok:
            raise Missing(f'namespaces "{origin}" not found')
        user = request["userInfo"]
        if origin != namespace and not _may_copy(api, user, origin, source["name"]):
            raise Refused(f"User {user['username']} has insufficient permissions in clone source namespace {origin}")
    except Refused:
        if not any(each in notes for each in _FILLED_OTHERWISE):
            raise


def _cloned(api: Api, spec: Json, namespace: str) -> Json | None:
    """Return the claim or snapshot that is copied."""
    if spec.get("source") is not None:
        return _copied(spec["source"])
    named = spec.get("sourceRef") or {}
    if named.get("kind") != "DataSource":
        return None
    path = f"/apis/{_GROUP}/v1beta1/namespaces/{named.get('namespace') or namespace}/datasources/{named['name']}"
    found = api.request("GET", path)
    if not found.ok:
        raise Missing(f'datasources.{_GROUP} "{named["name"]}" not found')
    source = found.body["spec"]["source"]
    return _copied(found.body.get("status", {}).get("source", {}) if source.get("dataSource") else source)


def _copied(source: Json) -> Json | None:
    found: Json | None = source.get("pvc") or source.get("snapshot")
    return found


def _may_copy(api: Api, user: Json, namespace: str, name: str) -> bool:
    asked = (
        {"group": _GROUP, "resource": "datavolumes", "subresource": "source"},
        {"resource": "pods"},
    )
    for each in asked:
        wanted = {"namespace": namespace, "name": name, "verb": "create", **each}
        spec = {"user": user["username"], "groups": user.get("groups") or [], "resourceAttributes": wanted}
        answer = api.request("POST", _REVIEWS, {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec})
        if answer.body.get("status", {}).get("allowed"):
            return True
    return False


def validate(api: Api, request: Json) -> None:
    """Raise `Refused` for a DataVolume that `datavolume-validate` does not take."""
    volume, before = request["object"], request.get("oldObject")
    spec, name, namespace = volume["spec"], request.get("name") or volume["metadata"].get("name", ""), request["namespace"]
    if before is not None and before["spec"] != spec:
        raise Refused("Cannot update DataVolume Spec")
    if before is None and name:
        claim = api.request("GET", f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}")
        if claim.ok and not _may_take(claim.body, volume):
            raise Refused(f"Destination PVC {namespace}/{name} already exists")
    _check_claim(spec)
    claim_spec = spec.get("pvc") or spec["storage"]
    given = [each for each in ("source", "sourceRef") if spec.get(each) is not None]
    if claim_spec.get("dataSource") or claim_spec.get("dataSourceRef"):
        if given:
            raise Refused("External population is incompatible with Source and SourceRef")
        return
    if len(given) != 1:
        raise Refused("Data volume should have either Source or SourceRef, or be externally populated")
    if given == ["source"]:
        _check_source(spec["source"], spec.get("contentType", ""))
    elif spec["sourceRef"].get("kind") != "DataSource":
        kind = spec["sourceRef"].get("kind", "")
        raise Refused(f"Unsupported sourceRef kind {kind}, currently only DataSource is supported" if kind else "Missing sourceRef kind")


def _may_take(claim: Json, volume: Json) -> bool:
    meta, notes = claim["metadata"], volume["metadata"].get("annotations") or {}
    owner = next((each for each in meta.get("ownerReferences") or () if each.get("controller")), None)
    populated = (meta.get("annotations") or {}).get("cdi.kubevirt.io/storage.populatedFor") == volume["metadata"].get("name")
    adopted = notes.get("cdi.kubevirt.io/allowClaimAdoption") == "true"
    return populated or adopted or (owner is not None and owner["kind"] == "DataVolume")


def _check_claim(spec: Json) -> None:
    given = [each for each in ("pvc", "storage") if spec.get(each) is not None]
    if not given:
        raise Refused("Missing Data volume PVC")
    if len(given) == 2:
        raise Refused("Duplicate storage definition, both target storage and target pvc defined")
    claim, word = spec[given[0]], {"pvc": "PVC", "storage": "Storage"}[given[0]]
    source = spec.get("source") or {}
    size = ((claim.get("resources") or {}).get("requests") or {}).get("storage")
    if size is None:
        if word == "PVC" or not (spec.get("sourceRef") or source.get("pvc") or source.get("snapshot")):
            raise Refused(f"{word} size is missing")
    elif quantity.parse(str(size)) <= 0:
        raise Refused(f"{word} size can't be equal or less than zero")
    elif quantity.parse(str(size)) < quantity.parse("1Mi"):
        raise Refused(f"{word} size should be at least 1MiB")
    modes = claim.get("accessModes") or []
    if word == "PVC" and len(modes) != 1:
        raise Refused("PVC multiple accessModes" if modes else "Required value: at least 1 access mode is required")
    if wrong := [each for each in modes if each not in _MODES]:
        raise Refused(f'Unsupported value: "{wrong[0]}": supported values: {", ".join(json.dumps(each) for each in _MODES)}')


def _check_source(source: Json, content: str) -> None:
    given = [each for each in _SOURCES if source.get(each) is not None]
    if len(given) != 1:
        raise Refused(f"{'Multiple Data volume sources' if given else 'Missing Data volume source'}")
    if content not in ("", "kubevirt", "archive"):
        raise Refused("ContentType not one of: kubevirt, archive")
    (kind,) = given
    member = source[kind]
    if content == "archive" and kind == "blank":
        raise Refused("SourceType cannot be blank and the contentType be archive")
    if kind == "registry":
        _check_registry(member, content)
    if kind in ("pvc", "snapshot") and not (member.get("namespace") and member.get("name")):
        raise Refused(f"spec.source.{'PVC' if kind == 'pvc' else 'Snapshot'} source {'PVC' if kind == 'pvc' else 'snapshot'} is not valid")
    for each, needed in (("imageio", _IMAGEIO_NEEDS), ("vddk", _VDDK_NEEDS)):
        if kind == each and not all(member.get(name) for name in needed):
            raise Refused(f"spec.source.{'Imageio' if each == 'imageio' else 'VDDK'} source is not valid")
    if kind in ("http", "s3", "gcs", "imageio", "vddk"):
        url = member.get("url", "")
        if not url:
            raise Refused("spec.source source URL is empty")
        if urlsplit(url).scheme not in ("http", "https", "gs"):
            raise Refused(f"spec.source Invalid source URL scheme: {url}")


def _check_registry(registry: Json, content: str) -> None:
    if content not in ("", "kubevirt"):
        raise Refused("ContentType must be kubevirt when Source is Registry")
    url, stream, method = registry.get("url"), registry.get("imageStream"), registry.get("pullMethod")
    if (url is None) == (stream is None):
        raise Refused("Source registry should have either URL or ImageStream")
    if url is not None and urlsplit(url).scheme not in ("docker", "oci-archive"):
        raise Refused(f"Illegal registry source URL scheme {url}")
    if stream is not None and method != "node":
        raise Refused("Source registry ImageStream is supported only with node pull import method")


# --- the server -------------------------------------------------------------------------------------------------------------

# Paths, and the decision of each.
WEBHOOKS: Mapping[str, Callable[[Api, Json], None]] = {"/datavolume-mutate": authorize, "/datavolume-validate": validate}


def answer(api: Api, path: str, review: Json) -> Json:
    """Return the review of one of the webhooks."""
    response: Json = {"uid": review["request"]["uid"], "allowed": True}
    try:
        WEBHOOKS[path](api, review["request"])
    except Refused as refusal:
        # CDI joins its causes with a blank before each; an error of its own has none.
        message, code = (str(refusal), 400) if isinstance(refusal, Missing) else (f" {refusal}", 422)
        response |= {"allowed": False, "status": {"message": message, "code": code}}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


def configurations(client: Callable[[str], Json]) -> Iterator[Json]:
    """Yield CDI's configurations; `client` says how a path is reached."""
    for path, kind in (("/datavolume-mutate", "MutatingWebhookConfiguration"), ("/datavolume-validate", "ValidatingWebhookConfiguration")):
        name = path.removeprefix("/")
        rule = {"apiGroups": [_GROUP], "apiVersions": ["v1beta1"], "resources": ["datavolumes"], "operations": ["CREATE", "UPDATE"]}
        webhook = {
            "name": f"{name}.{_GROUP}",
            "rules": [rule],
            "clientConfig": client(path),
            "failurePolicy": "Fail",
            "matchPolicy": "Exact",
            "sideEffects": "None",
            "timeoutSeconds": 30,
            "admissionReviewVersions": ["v1"],
        }
        api_version = "admissionregistration.k8s.io/v1"
        yield {"apiVersion": api_version, "kind": kind, "metadata": {"name": f"cdi-api-{name}"}, "webhooks": [webhook]}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, api: Api, *arguments: Any) -> None:
        self._api = api
        super().__init__(*arguments)

    def do_POST(self) -> None:
        """Answer a review."""
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        data = json.dumps(answer(self._api, self.path.partition("?")[0], review)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@contextmanager
def refusing(api: Api, directory: Path) -> Iterator[None]:
    """Have a server on this host ask the webhooks until the block ends."""
    authority = Authority(directory / "cdi-pki")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.server((HOST,)))
    server = ThreadingHTTPServer((HOST, 0), partial(_Handler, api))
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    bundle = base64.b64encode(authority.certificate).decode()
    path = "/apis/admissionregistration.k8s.io/v1/{}s"
    made = []
    try:
        for each in configurations(lambda place: {"url": f"https://{HOST}:{server.server_port}{place}", "caBundle": bundle}):
            collection = path.format(each["kind"].lower())
            answered = api.request("POST", collection, each)
            assert answered.ok, answered.message
            made.append(f"{collection}/{each['metadata']['name']}")
        yield
    finally:
        for path_of_one in made:
            api.request("DELETE", path_of_one)
        server.shutdown()
        server.server_close()
        thread.join()
