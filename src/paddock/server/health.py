"""Health, readiness and version (docs/spec/kube-api.md section 1.1)."""

import platform
from collections.abc import Callable

import orjson

import paddock
from paddock.server.edge.http import HttpRequest, HttpResponse

# The minor version whose semantics are implemented; our own name stands in the build metadata, so that clients can parse it.
_MAJOR, _MINOR = "1", "35"
_TEXT = (("content-type", "text/plain; charset=utf-8"), ("x-content-type-options", "nosniff"), ("cache-control", "no-cache, private"))
# What kube-apiserver starts one after the other and reports under these names; here one start does all of it.
_HOOKS = (
    "start-apiserver-admission-initializer",
    "generic-apiserver-start-informers",
    "start-apiextensions-informers",
    "start-apiextensions-controllers",
    "crd-informer-synced",
    "storage-readiness",
    "bootstrap-controller",
    "start-system-namespaces-controller",
    "start-service-ip-repair-controllers",
    "rbac/bootstrap-roles",
    "scheduling/bootstrap-system-priority-classes",
    "priority-and-fairness-config-producer",
    "start-cluster-authentication-info-controller",
    "start-kube-aggregator-informers",
    "apiservice-registration-controller",
    "apiservice-status-local-available-controller",
    "apiservice-status-remote-available-controller",
    "kube-apiserver-autoregistration",
    "apiservice-openapi-controller",
)
# A check gives the reason why it fails; empty when it does not.
Check = Callable[[], str]


class ServerHealth:
    """The checks of a server."""

    def __init__(self) -> None:
        self._live: dict[str, Check] = {"ping": lambda: "", "log": lambda: ""}
        self._ready: dict[str, Check] = {}

    def add_ready(self, name: str, check: Check) -> None:
        """The server is not to be asked while this fails."""
        self._ready[name] = check

    def add_start(self, started: Check) -> None:
        """The start, under the names that kube-apiserver has for its steps. It is over before it can fail again."""
        for name in (*(f"poststarthook/{each}" for each in _HOOKS), "autoregister-completion"):
            self._live[name] = started
        self._ready["informer-sync"] = started

    def add_store(self, check: Check) -> None:
        """The store, as `store` and as `etcd`. A full disk is no reason to end the server: it reads on."""
        self._ready["store"] = self._ready["etcd"] = check
        self._live["etcd"] = lambda: ""

    def answer(self, request: HttpRequest) -> HttpResponse | None:
        """The answer to a health path or /version, or None."""
        root, _, name = request.path.strip("/").partition("/")
        if root == "version" and not name:
            return HttpResponse(200, orjson.dumps(version()), (("content-type", "application/json"),))
        if root in ("healthz", "livez"):
            return _report(request, root, self._live, name)
        if root == "readyz":
            return _report(request, root, {**self._live, **self._ready}, name)
        return None


def _report(request: HttpRequest, root: str, checks: dict[str, Check], only: str) -> HttpResponse | None:
    if only:
        if only not in checks:
            return None
        checks = {only: checks[only]}
    excluded = request.query.get("exclude", [])
    checks = {name: check for name, check in checks.items() if name not in excluded}
    failed = {name for name, check in checks.items() if check()}
    if not failed and not request.flag("verbose"):
        return HttpResponse(200, b"ok", _TEXT)
    lines = [f"[-]{name} failed: reason withheld" if name in failed else f"[+]{name} ok" for name in checks]
    lines.append(f"{root} check {'failed' if failed else 'passed'}")
    return HttpResponse(500 if failed else 200, ("\n".join(lines) + "\n").encode(), _TEXT)


def version() -> dict[str, str]:
    """Return the version that `kubectl version` shows."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return {
        "major": _MAJOR,
        "minor": _MINOR,
        "gitVersion": f"v{_MAJOR}.{_MINOR}.0+paddock.{paddock.__version__}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": f"cpython {platform.python_version()}",
        "platform": f"linux/{machine}",
    }
