"""Discovery documents, aggregated and group by group (docs/spec/kube-api.md sections 1.2 and 1.3).

The server makes a document on the first request after a change of the registry, and identifies it by its digest.
"""

import base64
import hashlib

import orjson

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure
from paddock.server.edge.http import HttpRequest, HttpResponse
from paddock.server.resources import names
from paddock.server.resources.registry import ResourceRegistry
from paddock.server.resources.resource import ServedResource

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"


class Discovery:
    """The discovery documents of a registry."""

    def __init__(self, registry: ResourceRegistry) -> None:
        self._registry = registry
        self._edition = -1
        self._owners: names.Owners = {}
        self._made: dict[tuple[str, ...], tuple[bytes, str]] = {}

    def answer(self, request: HttpRequest) -> HttpResponse | None:
        """The answer to a discovery path, or None when it is none."""
        parts = tuple(part for part in request.path.split("/") if part)
        if parts in (("api",), ("apis",)):
            version = _aggregated_version(request.headers.get("accept", ""))
            if version:
                return self._reply(request, ("aggregated", parts[0], version), _AGGREGATED.format(version))
            return self._reply(request, parts, "application/json")
        if parts[:1] == ("apis",) and len(parts) in (2, 3):
            return self._reply(request, parts, "application/json")
        if parts[:1] == ("api",) and len(parts) == 2:
            return self._reply(request, parts, "application/json")
        return None

    def _reply(self, request: HttpRequest, path: tuple[str, ...], media: str) -> HttpResponse:
        if self._edition != self._registry.edition:
            self._made.clear()
            self._owners = names.owners(self._registry)
            self._edition = self._registry.edition
        if path not in self._made:
            document = self._document(path)
            if document is None:
                raise failure.no_such_path()
            body = orjson.dumps(document)
            self._made[path] = (body, f'"{hashlib.sha256(body).hexdigest()[:32].upper()}"')
        body, etag = self._made[path]
        headers = (("etag", etag), ("vary", "Accept"), ("cache-control", "public"))
        if request.headers.get("if-none-match") == etag:
            return HttpResponse(304, b"", headers)
        return HttpResponse(200, body, (*headers, ("content-type", media)))

    def _document(self, path: tuple[str, ...]) -> Data | None:
        groups = self._registry.groups()
        match path:
            case ("aggregated", root, version):
                return self._aggregated(root, version, groups)
            case ("api",):
                return {"kind": "APIVersions", "versions": groups.get("", []), "serverAddressByClientCIDRs": []}
            case ("apis",):
                return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(name, groups[name]) for name in groups if name]}
            case ("apis", group) if group in groups:
                called = self._registry.called.get(group, group)
                return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, groups[group]), "name": called}
            case ("apis", group, version) if version in groups.get(group, []):
                return self._version(group, version)
            case ("api", version) if version in groups.get("", []):
                return self._version("", version)
        return None

    def _aggregated(self, root: str, version: str, groups: dict[str, list[str]]) -> Data:
        named = [""] if root == "api" else [name for name in groups if name]
        items = [
            {
                "metadata": {"name": name, "creationTimestamp": None} if name else {"creationTimestamp": None},
                "versions": [
                    {
                        "version": served,
                        "freshness": "Current",
                        "resources": [_described(each) for each in self._resources(name, served)],
                    }
                    for served in groups.get(name, [])
                ],
            }
            for name in named
        ]
        return {"kind": "APIGroupDiscoveryList", "apiVersion": f"apidiscovery.k8s.io/{version}", "metadata": {}, "items": items}

    def _version(self, group: str, version: str) -> Data:
        resources = [entry for each in self._resources(group, version) for entry in _listed(each)]
        group_version = f"{group}/{version}" if group else version
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}

    def _resources(self, group: str, version: str) -> list[ServedResource]:
        """The resources of a group version, under the names that are theirs alone."""
        return [names.published(each, self._owners) for each in self._registry.of_version(group, version)]


def _aggregated_version(accept: str) -> str:
    """The version of aggregated discovery that the client likes best, if it takes any."""
    for clause in accept.split(","):
        options = {part.strip() for part in clause.split(";")}
        if {"g=apidiscovery.k8s.io", "as=APIGroupDiscoveryList"} <= options:
            for version in ("v2", "v2beta1"):
                if f"v={version}" in options:
                    return version
        elif clause.split(";")[0].strip() in ("application/json", "*/*"):
            return ""
    return ""


def _group(name: str, versions: list[str]) -> Data:
    found = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": found, "preferredVersion": found[0]}


def _described(resource: ServedResource) -> Data:
    # What has no objects has no kind, and clients want the member all the same.
    has_kind = bool(resource.kind)
    kind = {"group": resource.group if has_kind else "", "version": resource.version if has_kind else "", "kind": resource.kind}
    described: Data = {
        "resource": resource.plural,
        "responseKind": kind,
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": _offered(resource),
    }
    if resource.short_names:
        described["shortNames"] = list(resource.short_names)
    if resource.categories:
        described["categories"] = list(resource.categories)
    if resource.subresources:
        described["subresources"] = [
            {"subresource": sub.name, "responseKind": _kind_of(sub.kind, sub.group_version) or kind, "verbs": list(sub.verbs)}
            for sub in resource.subresources
        ]
    return described


def _offered(resource: ServedResource) -> list[str]:
    """Return the verbs that clients see. Empty where there are no objects, since clients list everything that has `list`."""
    return list(resource.offered or resource.verbs) if resource.kind else []


def _kind_of(kind: str, group_version: str) -> Data | None:
    if not kind:
        return None
    group, _, version = group_version.rpartition("/")
    return {"group": group, "version": version, "kind": kind}


def _storage_version_hash(resource: ServedResource) -> str:
    """A short name for the form that is stored, made as upstream makes it: tools that migrate storage compare it with their own."""
    version = resource.stored_version.rpartition("/")[2]
    return base64.b64encode(hashlib.sha256(f"{resource.group}/{version}/{resource.kind}".encode()).digest()[:8]).decode()


def _listed(resource: ServedResource) -> list[Data]:
    entry: Data = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _offered(resource),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.kind:
        entry["storageVersionHash"] = _storage_version_hash(resource)
    # Nothing can be done with what is there for its subresources alone.
    found = [entry] if resource.verbs else []
    for sub in resource.subresources:
        below: Data = {
            "name": f"{resource.plural}/{sub.name}",
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": sub.kind or resource.kind,
            "verbs": list(sub.verbs),
        }
        other = _kind_of(sub.kind, sub.group_version)
        if other is not None:
            below |= {"group": other["group"], "version": other["version"]}
        found.append(below)
    return found
