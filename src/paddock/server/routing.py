"""The route of a request, from its method and path alone (docs/spec/kube-api.md section 0.3).

The server finds the route before it checks that the resource exists: a client without rights learns no more than that.
"""

import msgspec

from paddock.server.edge.http import HttpRequest

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get", "HEAD": "get"}
# Parts below a namespace's own name that are its subresources, not collections in it.
_NAMESPACE_SUBRESOURCES = ("status", "finalize")


class RequestRoute(msgspec.Struct, frozen=True):
    """One request's place. For paths outside the API groups only `verb` and `path` are set."""

    verb: str
    path: str
    group: str = ""
    version: str = ""
    plural: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    is_resource: bool = False


def route(request: HttpRequest) -> RequestRoute:
    """The place of a request."""
    parts = [part for part in request.path.split("/") if part]
    if len(parts) >= 3 and parts[0] == "api":
        return _below("", parts[1], parts[2:], request)
    if len(parts) >= 4 and parts[0] == "apis":
        return _below(parts[1], parts[2], parts[3:], request)
    return RequestRoute(request.method.lower(), request.path)


def _below(group: str, version: str, parts: list[str], request: HttpRequest) -> RequestRoute:
    if parts[0] == "watch" and len(parts) >= 2 and request.method == "GET":
        # The old way to ask for a watch: what follows is the place of a list, or of one object.
        found = _place(group, version, parts[1:], request)
        return found if found.subresource else msgspec.structs.replace(found, verb="watch")
    return _place(group, version, parts, request)


def _place(group: str, version: str, parts: list[str], request: HttpRequest) -> RequestRoute:
    namespace = ""
    if parts[0] == "namespaces" and len(parts) >= 2:
        if len(parts) == 2 or (group == "" and len(parts) == 3 and parts[2] in _NAMESPACE_SUBRESOURCES):
            name, sub = parts[1], parts[2] if len(parts) == 3 else ""
            return _route(group, version, ("namespaces", name, name, sub), request)
        namespace, parts = parts[1], parts[2:]
    plural, name, sub = parts[0], parts[1] if len(parts) > 1 else "", "/".join(parts[2:])
    return _route(group, version, (plural, namespace, name, sub), request)


def _route(group: str, version: str, parts: tuple[str, str, str, str], request: HttpRequest) -> RequestRoute:
    plural, namespace, name, subresource = parts
    verb = _VERBS.get(request.method) or request.method.lower()
    if verb == "get" and not subresource:
        if request.flag("watch"):
            verb = "watch"
        elif not name:
            verb = "list"
    elif verb == "delete" and not name:
        verb = "deletecollection"
    return RequestRoute(verb, request.path, group, version, plural, namespace, name, subresource, is_resource=True)
