"""The part of Flux's source-controller that its kustomize-controller needs: artifacts of GitRepositories, as files over HTTP.

The source-controller itself does not build from the Go module proxy. This stand-in answers for repositories whose address is mapped to a
directory of this machine. It follows the commit of HEAD at every look and writes what the source-controller writes to the status:
`artifact`, `observedGeneration`, `lastHandledReconcileAt`, and the condition Ready.
"""

import contextlib
import hashlib
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.reference.client import MERGE_PATCH, Api, Json

_LIST = "/apis/source.toolkit.fluxcd.io/v1/gitrepositories"
_REQUESTED = "reconcile.fluxcd.io/requestedAt"
_PAUSE_SECONDS = 0.5


@dataclass
class GitSources:
    """The repositories by their address, and the artifacts that were made of them."""

    api: Api
    repositories: Mapping[str, Path]
    artifacts: dict[str, bytes]
    address: str = ""

    def look(self) -> None:
        """Bring the status of each GitRepository up to date."""
        listed = self.api.request("GET", _LIST)
        # 404: the definitions are not installed yet.
        for repository in listed.body.get("items", ()) if listed.ok else ():
            status = self._status(repository)
            if {**repository.get("status", {}), **status} != repository.get("status"):
                metadata = repository["metadata"]
                path = f"/apis/source.toolkit.fluxcd.io/v1/namespaces/{metadata['namespace']}/gitrepositories/{metadata['name']}/status"
                answer = self.api.request("PATCH", path, {"status": status}, headers=MERGE_PATCH)
                assert answer.ok or answer.status == 404, answer.message

    def _status(self, repository: Json) -> Json:
        metadata, before = repository["metadata"], repository.get("status", {})
        status: Json = {"observedGeneration": metadata["generation"]}
        if requested := metadata.get("annotations", {}).get(_REQUESTED):
            status["lastHandledReconcileAt"] = requested
        folder = self.repositories.get(repository["spec"]["url"])
        commit = _git(folder, "rev-parse", "--verify", "-q", "HEAD") if folder else b""
        if folder is None or not commit:
            return {**status, "conditions": [_ready(before, "False", "GitOperationFailed", "repository not found")]}
        revision = f"main@sha1:{commit.decode().strip()}"
        status["conditions"] = [_ready(before, "True", "Succeeded", f"stored artifact for revision '{revision}'")]
        if before.get("artifact", {}).get("revision") != revision:
            status["artifact"] = self._artifact(folder, repository, revision)
        return status

    def _artifact(self, folder: Path, repository: Json, revision: str) -> Json:
        data = _git(folder, "archive", "--format=tar.gz", "HEAD")
        metadata = repository["metadata"]
        path = f"gitrepository/{metadata['namespace']}/{metadata['name']}/{revision.rpartition(':')[2]}.tar.gz"
        self.artifacts[path] = data
        return {
            "digest": f"sha256:{hashlib.sha256(data).hexdigest()}",
            "lastUpdateTime": _now(),
            "path": path,
            "revision": revision,
            "size": len(data),
            "url": f"http://{self.address}/{path}",
        }


def _ready(before: Json, status: str, reason: str, message: str) -> Json:
    condition = {"type": "Ready", "status": status, "reason": reason, "message": message}
    known: Json = next((each for each in before.get("conditions", ()) if each["type"] == "Ready"), {})
    same = all(known.get(name) == value for name, value in condition.items())
    return {**condition, "lastTransitionTime": known["lastTransitionTime"] if same else _now()}


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _git(folder: Path, *arguments: str) -> bytes:
    """Return the output of git; empty if it failed, as for a directory that is no repository yet."""
    return subprocess.run(["git", "-C", str(folder), *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


@contextlib.contextmanager
def serving_sources(api: Api, repositories: Mapping[str, Path]) -> Iterator[GitSources]:
    """The stand-in at work for the length of a `with` block."""
    sources = GitSources(api, repositories, {})
    handler = type("Handler", (_Artifacts,), {"artifacts": sources.artifacts})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        sources.address = f"127.0.0.1:{server.server_port}"
        over = threading.Event()
        threads = [threading.Thread(target=server.serve_forever), threading.Thread(target=_look_until, args=(sources, over))]
        for thread in threads:
            thread.start()
        try:
            yield sources
        finally:
            over.set()
            server.shutdown()
            for thread in threads:
                thread.join()


def _look_until(sources: GitSources, over: threading.Event) -> None:
    while not over.wait(_PAUSE_SECONDS):
        sources.look()


class _Artifacts(BaseHTTPRequestHandler):
    artifacts: Mapping[str, bytes]

    def do_GET(self) -> None:
        data = self.artifacts.get(self.path.removeprefix("/"))
        self.send_response(200 if data is not None else 404)
        self.send_header("Content-Length", str(len(data or b"")))
        self.end_headers()
        self.wfile.write(data or b"")

    def log_message(self, format: str, *args: object) -> None:
        pass
