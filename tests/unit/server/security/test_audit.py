"""The record of requests: a line for whatever would change something, none with a secret."""

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from paddock.kubernetes.meta import failure
from paddock.server.context import RequestContext, User
from paddock.server.edge.http import ConnectionPeer, HttpRequest, HttpResponse
from paddock.server.routing import RequestRoute, route
from paddock.server.security.audit import content, policy
from paddock.server.security.audit.file import AuditFile, Rotation
from paddock.server.security.audit.log import GONE, AuditLog
from tests.coroutines import run_by
from tests.kit.servers.apiharness import GuardedHarness

ROOT = {"authorization": "Bearer root"}
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
MACHINES = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"
HIDDEN = "hunter2-do-not-tell"


class Kept:
    """Lines in memory."""

    def __init__(self) -> None:
        self.raw = b""
        self.blocked = ""

    def write(self, line: bytes) -> None:
        self.raw += line

    @property
    def events(self) -> list[dict[str, Any]]:
        return [orjson.loads(line) for line in self.raw.splitlines()]


class Audited(GuardedHarness):
    """A server that records into memory."""

    def __init__(self, folder: Path, rules: Any = None) -> None:
        folder.mkdir(exist_ok=True)
        super().__init__(folder)
        self.kept = Kept()
        self._rules = rules

    async def __aenter__(self) -> "Audited":
        await super().__aenter__()
        said = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": self._rules}
        if self._rules is not None:
            (self._folder / "policy.yaml").write_text(yaml.safe_dump(said))
        chosen = policy.Plain("Metadata") if self._rules is None else policy.read(self._folder / "policy.yaml")
        self.api._journal = AuditLog(self.kept, chosen, self.clock)
        return self


@asynccontextmanager
async def audited(folder: Path, rules: Any = None) -> AsyncIterator[Audited]:
    """Start a server that records. The raw lines never hold what is hidden."""
    async with Audited(folder, rules) as api:
        yield api
    assert HIDDEN.encode() not in api.kept.raw


def play(folder: Path, script: Callable[[Audited], Awaitable[None]], rules: Any = None) -> list[dict[str, Any]]:
    """Run a script; returns what was recorded."""

    async def inside() -> list[dict[str, Any]]:
        async with audited(folder, rules) as api:
            await script(api)
        return api.kept.events

    return asyncio.run(inside())


async def _stay(call: RequestContext) -> HttpResponse:
    await asyncio.sleep(3600)
    raise AssertionError


async def _break(call: RequestContext) -> HttpResponse:
    raise ZeroDivisionError(HIDDEN)


async def _everything_that_changes(api: Audited) -> None:
    named = {"metadata": {"name": "a"}}
    assert (await api.post(CONFIGMAPS, named, **ROOT)).status == 201
    assert (await api.post(CONFIGMAPS, named, **ROOT)).status == 409
    assert (await api.post(CONFIGMAPS, {"metadata": {"name": "B?"}}, **ROOT)).status == 422
    assert (await api.post(CONFIGMAPS, b"{", **ROOT)).status == 400
    assert (await api.post(CONFIGMAPS, named, authorization="Bearer ada")).status == 403
    assert (await api.post(CONFIGMAPS, named, authorization="Bearer 1nvalid")).status == 401
    assert (await api.put(f"{CONFIGMAPS}/none", {"metadata": {"name": "none"}}, **ROOT)).status == 404
    assert (
        await api.call("PATCH", f"{CONFIGMAPS}/a", {"data": {"k": "v"}}, content_type="application/merge-patch+json", **ROOT)
    ).status == 200
    assert (await api.call("PATCH", f"{CONFIGMAPS}/a", b"x", content_type="text/plain", **ROOT)).status == 415
    assert (await api.delete(f"{CONFIGMAPS}/a", **ROOT)).status == 200
    assert (await api.delete(CONFIGMAPS, **ROOT)).status == 200
    assert (await api.post("/apis/no.such/v1/things", named, **ROOT)).status == 404
    assert (await api.post("/version", None, **ROOT)).status == 405


_EVERY_CHANGE = [
    ("create", 201),
    ("create", 409),
    ("create", 422),
    ("create", 400),
    ("create", 403),
    ("create", 401),
    ("update", 404),
    ("patch", 200),
    ("patch", 415),
    ("delete", 200),
    ("deletecollection", 200),
    ("create", 404),
    ("post", 405),
]


async def _defects_and_leavers(api: Audited) -> None:
    api.api.subresources["", "configmaps", "", "create"] = _break
    assert (await api.post(CONFIGMAPS, {"metadata": {"name": "a"}}, **ROOT)).status == 500
    api.api.subresources["", "configmaps", "", "create"] = _stay
    leaving = asyncio.create_task(api.post(CONFIGMAPS, {"metadata": {"name": "a"}}, **ROOT))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    assert (await api.post(f"{CONFIGMAPS}?timeout=10ms", {"metadata": {"name": "a"}}, **ROOT)).status == 504
    api.api.refused(HttpRequest("POST", CONFIGMAPS, {}, b"", ConnectionPeer("10.0.0.1")), HttpResponse(413, b"{}"))


async def _secrets(api: Audited) -> None:
    """Everything that could carry a secret, done right and done wrong, in every form of a body."""
    for path in (SECRETS, CONFIGMAPS):
        text = {"stringData": {"k": HIDDEN}} if path == SECRETS else {"data": {"k": HIDDEN}}
        await api.post(path, {"metadata": {"name": "a"}, **text}, **ROOT)
        await api.post(path, {"metadata": {"name": "a"}, **text}, **ROOT)
        await api.post(path, {"metadata": {"name": "b"}, "data": {"k": HIDDEN, HIDDEN * 20: "x"}}, **ROOT)
        await api.post(path, {"metadata": {"name": "c"}, HIDDEN: HIDDEN}, **ROOT)
        await api.put(f"{path}/a", {"metadata": {"name": "a"}, **text, "type": HIDDEN}, **ROOT)
        for media, body in (
            ("application/merge-patch+json", text),
            ("application/strategic-merge-patch+json", text),
            ("application/apply-patch+yaml", {"metadata": {"name": "a"}, **text}),
            ("application/json-patch+json", [{"op": "add", "path": "/data/k", "value": HIDDEN}]),
            ("application/json-patch+json", [{"op": "test", "path": "/data/k", "value": HIDDEN}]),
            ("application/json-patch+json", [{"op": HIDDEN}]),
        ):
            await api.call("PATCH", f"{path}/a?fieldManager=x&force=true", body, content_type=media, **ROOT)
        await api.get(f"{path}/a", **ROOT)
        await api.get(path, **ROOT)
        await api.delete(f"{path}/a", **ROOT)
    await api.post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": HIDDEN}}, **ROOT)
    await api.post(f"{ACCOUNTS}/default/token", {"spec": {"audiences": [HIDDEN]}}, **ROOT)
    await api.get("/api/v1/pods", authorization=f"Bearer {HIDDEN}")
    volume = {"name": "c", "cloudInitNoCloud": {"userData": HIDDEN}}
    notes = {"kubectl.kubernetes.io/last-applied-configuration": HIDDEN}
    machine = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "m", "annotations": notes},
        "spec": {
            "running": False,
            "template": {
                "spec": {"domain": {"memory": {"guest": "1Gi"}, "devices": {"disks": [{"name": "c", "disk": {}}]}}, "volumes": [volume]}
            },
        },
    }
    made = await api.post(MACHINES, machine, **ROOT)
    assert made.status == 201, made.raw
    place = "/spec/template/spec/volumes/0/cloudInitNoCloud"
    for change in ({"path": f"{place}/userData", "value": HIDDEN}, {"path": place, "value": {"userData": HIDDEN}}):
        done = await api.call("PATCH", f"{MACHINES}/m", [{"op": "replace", **change}], content_type="application/json-patch+json", **ROOT)
        assert done.status == 200, done.data
    await api.get(MACHINES, **ROOT)


@pytest.mark.spec("kube-api", 126)
def test_every_change_has_its_line_and_no_line_has_a_secret(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    events = play(tmp_path / "a", _everything_that_changes)
    assert [(event["verb"], event["responseStatus"]["code"]) for event in events] == _EVERY_CHANGE
    assert {event["stage"] for event in events} == {"ResponseComplete"}
    assert events[0]["objectRef"] == {"resource": "configmaps", "namespace": "default", "name": "a", "apiVersion": "v1"}
    assert events[4]["annotations"] == {"authorization.k8s.io/decision": "forbid"}
    events = play(tmp_path / "b", _defects_and_leavers)
    found = [(event["stage"], event["responseStatus"]["code"]) for event in events]
    assert found == [("Panic", 500), ("ResponseComplete", GONE), ("ResponseComplete", 504), ("ResponseComplete", 413)]
    everything = [{"level": "RequestResponse"}]
    for number, rules in enumerate((None, everything, [{"level": "Request"}])):
        events = play(tmp_path / f"c{number}", _secrets, rules)
        closed = [event for event in events if event.get("objectRef", {}).get("resource") in ("secrets", "configmaps", "tokenreviews")]
        assert closed
        assert {event["level"] for event in closed} == {"Metadata"}
        machines = [event for event in events if event.get("objectRef", {}).get("resource") == "virtualmachines"]
        assert rules is None or content.REDACTED in str(machines)
    assert all(HIDDEN not in record.getMessage() for record in caplog.records)


@run_by(asyncio.run)
async def test_who_acts_for_whom_is_told(tmp_path: Path) -> None:
    async with audited(tmp_path) as api:
        as_ada = {"impersonate-user": "ada", "impersonate-group": "dev", "impersonate-uid": "7", "impersonate-extra-reason": "test"}
        await api.post(CONFIGMAPS, {"metadata": {"name": "a"}}, **ROOT, **as_ada)
    (event,) = api.kept.events
    assert event["user"] == {"username": "root", "groups": ["system:masters", "system:authenticated"]}
    assert event["impersonatedUser"] == {
        "username": "ada",
        "uid": "7",
        "groups": ["dev", "system:authenticated"],
        "extra": {"reason": ["test"]},
    }


@run_by(asyncio.run)
async def test_two_requests_with_one_audit_id_are_two_lines(tmp_path: Path) -> None:
    async with audited(tmp_path) as api:
        bodies = [{"metadata": {"name": name}} for name in ("a", "b")]
        await asyncio.gather(*(api.post(CONFIGMAPS, body, **ROOT, audit_id="mine") for body in bodies))
        await api.post(CONFIGMAPS, bodies[0], **ROOT, audit_id="x" * 65)
    events = api.kept.events
    assert [event["auditID"] for event in events[:2]] == ["mine", "mine"]
    assert events[2]["auditID"] != "x" * 65


@run_by(asyncio.run)
async def test_stages_and_bodies_follow_the_policy(tmp_path: Path) -> None:
    rules = [
        {"level": "None", "users": ["nobody"]},
        {"level": "RequestResponse", "resources": [{"group": "coordination.k8s.io"}], "omitManagedFields": True},
        {"level": "Request", "verbs": ["watch"], "omitStages": ["RequestReceived"]},
    ]
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"

    async with audited(tmp_path, rules) as api:
        body = {"metadata": {"name": "a"}, "spec": {"holderIdentity": "me"}}
        await api.post(leases, body, **ROOT)
        await api.post(CONFIGMAPS, {"metadata": {"name": "a"}}, **ROOT)
        await api.answer("GET", f"{CONFIGMAPS}?watch=true", **ROOT)
    events = api.kept.events
    assert [(event["verb"], event["stage"]) for event in events] == [
        ("create", "RequestReceived"),
        ("create", "ResponseComplete"),
        ("watch", "ResponseStarted"),
        ("watch", "ResponseComplete"),
    ]
    assert events[1]["requestObject"]["spec"] == {"holderIdentity": "me"}
    assert events[1]["responseObject"]["metadata"]["name"] == "a"
    assert "managedFields" not in events[1]["responseObject"]["metadata"]


ADA = User("ada", ("dev",))
NOBODY = None
RULES: list[tuple[dict[str, Any], User | None, str, str, bool]] = [
    ({}, NOBODY, "GET", "/version", True),
    ({"users": ["ada"]}, ADA, "GET", "/version", True),
    ({"users": ["bob"]}, ADA, "GET", "/version", False),
    ({"users": ["ada"]}, NOBODY, "GET", "/version", False),
    ({"userGroups": ["x", "dev"]}, ADA, "GET", "/version", True),
    ({"userGroups": ["x"]}, ADA, "GET", "/version", False),
    ({"verbs": ["list"]}, ADA, "GET", CONFIGMAPS, True),
    ({"verbs": ["get"]}, ADA, "GET", CONFIGMAPS, False),
    ({"namespaces": ["default"]}, ADA, "GET", CONFIGMAPS, True),
    ({"namespaces": ["other"]}, ADA, "GET", CONFIGMAPS, False),
    ({"namespaces": [""]}, ADA, "GET", "/api/v1/nodes", True),
    ({"namespaces": ["default"]}, ADA, "GET", "/version", False),
    ({"resources": [{"group": ""}]}, ADA, "GET", CONFIGMAPS, True),
    ({"resources": [{"group": "apps"}]}, ADA, "GET", CONFIGMAPS, False),
    ({"resources": [{"group": "*"}]}, ADA, "GET", CONFIGMAPS, True),
    ({"resources": [{"group": "", "resources": ["configmaps"]}]}, ADA, "GET", CONFIGMAPS, True),
    ({"resources": [{"group": "", "resources": ["pods"]}]}, ADA, "GET", "/api/v1/namespaces/a/pods/b/status", False),
    ({"resources": [{"group": "", "resources": ["pods/*"]}]}, ADA, "GET", "/api/v1/namespaces/a/pods/b/status", True),
    ({"resources": [{"group": "", "resources": ["pods/status"]}]}, ADA, "GET", "/api/v1/namespaces/a/pods/b/status", True),
    ({"resources": [{"group": "", "resources": ["*/status"]}]}, ADA, "GET", "/api/v1/namespaces/a/pods/b/status", True),
    ({"resources": [{"group": "", "resources": ["*/log"]}]}, ADA, "GET", "/api/v1/namespaces/a/pods/b/status", False),
    ({"resources": [{"group": "", "resources": ["pods"], "resourceNames": ["b"]}]}, ADA, "GET", "/api/v1/namespaces/a/pods/b", True),
    ({"resources": [{"group": "", "resources": ["pods"], "resourceNames": ["c"]}]}, ADA, "GET", "/api/v1/namespaces/a/pods/b", False),
    ({"nonResourceURLs": ["/healthz*"]}, ADA, "GET", "/healthz/ping", True),
    ({"nonResourceURLs": ["/version"]}, ADA, "GET", "/healthz", False),
    ({"nonResourceURLs": ["*"]}, ADA, "GET", "/healthz", True),
    ({"nonResourceURLs": ["*"]}, ADA, "GET", CONFIGMAPS, False),
]


@pytest.mark.parametrize(("said", "user", "method", "path", "expected"), RULES)
def test_a_rule_matches(said: dict[str, Any], user: User | None, method: str, path: str, expected: bool, tmp_path: Path) -> None:
    text = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata", **said}]}
    (tmp_path / "policy").write_text(yaml.safe_dump(text))
    found = policy.read(tmp_path / "policy").of(user, route(HttpRequest(method, path, {}, b"", ConnectionPeer("::1"))), 200)
    assert (found.level == "Metadata") is expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Expected `object`"),
        ("a: [", "while parsing"),
        ("apiVersion: audit.k8s.io/v1beta1\nkind: Policy\nrules: []", "Invalid enum value"),
        ("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: []", "nothing would be recorded"),
        ("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: All}]", "Invalid enum value 'All'"),
        ("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, user: [a]}]", "unknown field `user`"),
        ("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, nonResourceURLs: [a]}]", "must begin with"),
        ("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, nonResourceURLs: ['/*a']}]", "final character"),
        ("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, nonResourceURLs: ['/a'], namespaces: [a]}]", "both"),
        ("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, resources: [{resourceNames: [a]}]}]", "at least one resource"),
    ],
)
def test_a_policy_that_cannot_be_followed_is_refused(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "policy").write_text(text.replace("level: None", "level: 'None'"))
    with pytest.raises(policy.UnusablePolicy, match=why):
        policy.read(tmp_path / "policy")
    with pytest.raises(policy.UnusablePolicy, match="No such file"):
        policy.read(tmp_path / "none")


def test_files_are_begun_anew_and_old_ones_go(tmp_path: Path) -> None:
    file = AuditFile(tmp_path / "audit.log", Rotation(bytes=10, files=2))
    for number in range(5):
        file.write(b"line number %d\n" % number)
    assert (tmp_path / "audit.log").read_bytes() == b""
    assert [each.read_bytes() for each in file.earlier()] == [b"line number 4\n", b"line number 3\n"]
    assert (tmp_path / "audit.log").stat().st_mode & 0o777 == 0o600
    for each in file.earlier():
        os.utime(each, (0, 0))
    aged = AuditFile(tmp_path / "audit.log", Rotation(bytes=10, files=0, days=1))
    aged.write(b"line number 5\n")
    assert [each.read_bytes() for each in file.earlier()] == [b"line number 5\n"]
    file.close()
    aged.close()


class FullDisk:
    """`os.write` on a disk with little room."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room = 1_000_000
        self._write = os.write
        monkeypatch.setattr("paddock.server.security.audit.file.os.write", self)

    def __call__(self, file: int, data: bytes) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        count = self._write(file, data[: self.room])
        self.room -= count
        return count


def test_a_full_disk_loses_lines_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    disk = FullDisk(monkeypatch)
    file = AuditFile(tmp_path / "audit.log")
    file.write(b"one\n")
    disk.room = 2
    file.write(b"two\n")
    file.write(b"three\n")
    assert file.blocked == ""
    disk.room = 1000
    file.write(b"four\n")
    assert (tmp_path / "audit.log").read_bytes() == b"one\nfour\n"
    counted = [line for line in file.counted() if not line.startswith("#")]
    assert counted == ["apiserver_audit_event_total 2", "apiserver_audit_error_total 2"]
    assert [record.getMessage() for record in caplog.records] == ["audit log not writable", "audit log writable again"]
    failed, again = (vars(record) for record in caplog.records)
    assert (failed["error"], again["lost_lines"]) == ("the disk took only a part of it", 2)
    file.close()


def test_a_full_disk_stops_changes_where_that_is_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = FullDisk(monkeypatch)
    now = [0.0]
    monkeypatch.setattr("paddock.server.security.audit.file.time.monotonic", lambda: now[0])
    file = AuditFile(tmp_path / "audit.log", strict=True)
    log = AuditLog(file, policy.Plain("Metadata"), _Clock())
    change, look = (HttpRequest(method, CONFIGMAPS, {}, b"", ConnectionPeer("::1")) for method in ("POST", "GET"))

    def asked(request: HttpRequest) -> str:
        try:
            log.identified(log.begin(request, route(request)), ADA)
        except failure.Failure as said:
            return said.reason
        return ""

    disk.room = 0
    file.write(b"lost\n")
    assert (asked(change), asked(look)) == ("ServiceUnavailable", "")
    disk.room = 1000
    assert asked(change) == "ServiceUnavailable", "it is not tried for each request"
    now[0] += 2
    assert (asked(change), (tmp_path / "audit.log").read_bytes()) == ("", b"")
    file.close()


class _Clock:
    def seconds(self) -> float:
        return 1_800_000_000.0

    def uid(self) -> str:
        return "id"


def test_bodies_that_cannot_be_read_are_left_out() -> None:
    place = RequestRoute("create", MACHINES, "kubevirt.io", "v1", "virtualmachines", is_resource=True)
    for media, body in (("application/json", b"{"), ("application/vnd.kubernetes.protobuf", b"k8s\x00\xff"), ("text/yaml", b"a: b")):
        assert (
            content.request_object(HttpRequest("POST", MACHINES, {"content-type": media}, body, ConnectionPeer("::1")), place, managed=True)
            is None
        )
