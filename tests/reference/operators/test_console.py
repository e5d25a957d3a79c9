"""The web console beside a cluster: KubeVirt's own virt-api and virt-controller answer, or nobody has installed KubeVirt."""

import asyncio
import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from paddock.base.clock import SystemClock
from paddock.kubernetes.client import kubeconfig
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.http.https import Https
from paddock.kubernetes.client.transport import Transport
from paddock.server.security.pki import Authority, write_private
from paddock.web.live.topicnames import WebTopic
from tests.host.console import browser as chromium
from tests.host.console.browser import Browser
from tests.reference.build import Binaries
from tests.reference.client import Json
from tests.reference.consoleprogram import API, PATIENCE, ConsoleProgram, open_watches, serving_console
from tests.reference.operators.conftest import Real
from tests.reference.operators.others import STAKATER, VITISTACK
from tests.reference.server import Access, Rules, running, write_kubeconfig
from tests.scenario.fronts import player
from tests.scenario.web.pages import Page
from tests.scenario.web.recordedcluster import FILE, RecordedCluster, Recorder, play

pytestmark = pytest.mark.reference
NAMESPACE = "console"
WEB = f"machines/vm/{NAMESPACE}/web"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
MACHINES = f"/apis/kubevirt.io/v1/namespaces/{NAMESPACE}/virtualmachines"
PICTURES = chromium.ROOT / "build" / "console" / "cluster"
TOPICS: tuple[WebTopic, ...] = get_args(WebTopic)
MACHINE: Json = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "VirtualMachine",
    "metadata": {"name": "web", "namespace": NAMESPACE},
    "spec": {
        "runStrategy": "Always",
        "template": {
            "spec": {
                "domain": {
                    "memory": {"guest": "128Mi"},
                    "devices": {
                        "disks": [{"name": "root", "disk": {"bus": "virtio"}}],
                        "interfaces": [{"name": "default", "masquerade": {}}],
                    },
                },
                "networks": [{"name": "default", "pod": {}}],
                "volumes": [{"name": "root", "containerDisk": {"image": "registry.example.com/disk:1"}}],
            }
        },
    },
}
FRONT = {
    "apiVersion": "infrastructure.stakater.com/v1",
    "kind": "VirtualMachine",
    "metadata": {"name": "shop", "namespace": NAMESPACE},
    "spec": {"parameters": {"dataSource": {"name": "rhel9", "namespace": "default"}}},
}


def wait(what: Callable[[], Any]) -> Any:
    """Return the first true value."""
    deadline = time.monotonic() + PATIENCE
    while not (found := what()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def written(console: ConsoleProgram, document: Any) -> None:
    reply = console.post("apply", {"yaml": yaml.safe_dump(document), "dryRun": False, "force": False})
    assert reply.status == 200, reply.body


def row(console: ConsoleProgram, place: str = WEB) -> Json:
    found: Json = console.get(place)["row"]
    return found


def wait_row(console: ConsoleProgram, status: str) -> None:
    """Wait until the machine has a status."""
    deadline = time.monotonic() + PATIENCE
    while (found := row(console))["status"] != status:
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


@pytest.fixture(scope="module")
def console(real: Real, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleProgram]:
    """The administrator's, with a machine that runs and one of Stakater's."""
    made = real.cluster.api.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    assert made.ok, made.message
    with serving_console(real.cluster.access.kubeconfig, tmp_path_factory.mktemp("console") / "log", "-n", NAMESPACE) as program:
        program.follow()
        for each in (MACHINE, FRONT):
            written(program, each)
        wait(lambda: row(program)["state"] == "good")
        yield program
        # The operators of other tests find machines of this one's users: the cluster is theirs, too.
        for front in (STAKATER, VITISTACK, player.MACHINES):
            gone = real.cluster.api.request("DELETE", front.path(NAMESPACE))
            assert gone.ok, gone.message
        # Nothing that a cluster answers is a defect of the console.
        assert "report this" not in program.said() and "Traceback" not in program.said()


def resets(console: ConsoleProgram, *topics: str) -> dict[str, list[Json]]:
    """Return the first rows of topics."""
    found: dict[str, list[Json]] = {}
    with console.stream(*topics) as events:
        for name, data in events:
            assert name in ("reset", "change"), data
            if name == "reset":
                found[data["topic"]] = data["rows"]
            if len(found) == len(topics):
                return found
    raise AssertionError(found)


def test_every_topic_has_the_rows_of_the_cluster(console: ConsoleProgram) -> None:
    found = resets(console, *TOPICS)
    machines = {each["id"]: each for each in found["machines"]}
    assert machines[f"vm/{NAMESPACE}/web"]["status"] == "Running" and machines[f"vm/{NAMESPACE}/web"]["node"] == "node"
    assert machines[f"stakater/{NAMESPACE}/shop"]["dialect"] == "stakater"
    assert any(each["object"] == "VirtualMachine/web" for each in found["events"])
    for topic in ("images", "volumes", "networks", "snapshots", "pools", "providers", "migrations"):
        assert console.get(f"kinds/{topic}") == {"rows": found[topic]}


def test_pages_share_one_watch_of_each_kind(console: ConsoleProgram, real: Real, tmp_path: Path) -> None:
    before = open_watches(real.cluster.access)
    with serving_console(real.cluster.access.kubeconfig, tmp_path / "log") as other, ExitStack() as pages:
        other.follow()
        for _ in range(3):
            events = pages.enter_context(other.stream(*TOPICS))
            for _ in TOPICS:
                next(events)
        followed = {name: number - before.get(name, 0) for name, number in open_watches(real.cluster.access).items()}
    machines = ("virtualmachines.kubevirt.io", "virtualmachineinstances.kubevirt.io", "virtualmachines.infrastructure.stakater.com")
    assert [followed[each] for each in machines] == [1, 1, 1]
    assert max(followed.values()) == 1


async def played(transport: Transport) -> Json:
    async with Page(client=Client(transport)) as page:
        return await play(page)


def test_the_recording_is_that_of_the_cluster(console: ConsoleProgram, real: Real, pytestconfig: pytest.Config) -> None:
    """The recording that suites without Go take for a cluster (`tests/scenario/web/test_cluster.py`)."""
    access = kubeconfig.find({}, SystemClock(), explicit=real.cluster.access.kubeconfig)

    recorder = Recorder(Https(access))
    live = asyncio.run(played(recorder))
    wait_row(console, "Stopped")
    assert console.post(f"{WEB}/actions/start").status == 200
    wait_row(console, "Running")
    if pytestconfig.getoption("--golden-update"):
        FILE.write_text(recorder.text())
    recorded = asyncio.run(played(RecordedCluster.of_file()))
    assert live.keys() == recorded.keys()
    for path in live:
        assert shape(live[path]) == shape(recorded[path]), path


def shape(value: Any) -> Any:
    """Return an answer without what differs from cluster to cluster: the members of objects, and the kinds of their values."""
    if isinstance(value, dict):
        return {name: shape(each) for name, each in value.items()}
    if isinstance(value, list):
        return [] if not value else [shape(value[0])]
    return type(value).__name__


def instance(real: Real) -> str:
    """Return the UID of the machine's instance; empty while it has none."""
    found = real.get(f"/apis/kubevirt.io/v1/namespaces/{NAMESPACE}/virtualmachineinstances/web")
    return str(found["metadata"]["uid"]) if found else ""


def differs(real: Real, before: str) -> bool:
    """Return whether the machine has another instance, or none any more."""
    return instance(real) != before


def test_virt_api_carries_the_verbs_out(console: ConsoleProgram, real: Real) -> None:
    first = console.get(WEB)
    assert {each["verb"] for each in first["actions"] if each["allowed"]} >= {"stop", "restart", "pause", "snapshot", "delete"}
    for verb, status in (("stop", "Stopped"), ("start", "Running"), ("restart", "Running")):
        before = instance(real)
        reply = console.post(f"{WEB}/actions/{verb}", {"options": {}})
        assert reply.status == 200, reply.body
        wait_row(console, status)
        # A restart may be over within the second that its times are written in.
        wait(partial(differs, real, before))
        wait_row(console, status)
    # It needs virt-handler on the node, and says what virt-api says.
    reply = console.post(f"{WEB}/actions/pause")
    assert reply.status == 400 and "virt-handler" in reply.error["message"]


def test_verbs_that_make_objects(console: ConsoleProgram, real: Real) -> None:
    for verb in ("snapshot", "clone", "protect", "unprotect"):
        reply = console.post(f"{WEB}/actions/{verb}", {"options": {"name": f"web-{verb}"}})
        assert reply.status == 200, reply.body
    assert real.get(f"/apis/snapshot.kubevirt.io/v1beta1/namespaces/{NAMESPACE}/virtualmachinesnapshots/web-snapshot")
    clones = real.items(f"/apis/clone.kubevirt.io/v1beta1/namespaces/{NAMESPACE}/virtualmachineclones")
    assert [each["spec"]["target"]["name"] for each in clones] == ["web-clone"]


def test_a_page_of_a_machine(console: ConsoleProgram) -> None:
    found = console.get(WEB)
    assert [each["name"] for each in found["disks"]] == ["root"] and [each["addresses"] for each in found["nics"]] == [["10.0.2.2"]]
    assert found["access"]["exec"] == "" and "Paddock's own server" in found["access"]["note"]
    assert console.get(f"{WEB}/why")["state"] == "good"
    assert console.get(f"{WEB}/events")["events"] and console.get(f"{WEB}/history")["history"]
    front = console.get(f"machines/stakater/{NAMESPACE}/shop/why")
    assert front["state"] != "good"


def test_a_machine_that_cannot_start_is_explained(console: ConsoleProgram) -> None:
    spec = {**MACHINE["spec"], "template": {"spec": {**MACHINE["spec"]["template"]["spec"], "nodeSelector": {"rack": "none"}}}}
    spec["template"]["spec"]["volumes"] = [{"name": "root", "persistentVolumeClaim": {"claimName": "nothing"}}]
    written(console, {**MACHINE, "metadata": {"name": "stuck", "namespace": NAMESPACE}, "spec": spec})
    found = wait(lambda: (why := console.get(f"machines/vm/{NAMESPACE}/stuck/why"))["causes"] and why)
    assert found["state"] in ("waits", "fails") and "nothing" in json.dumps(found["causes"])
    reply = console.post(f"machines/vm/{NAMESPACE}/stuck/actions/delete", {"options": {}})
    assert reply.status == 200, reply.body


@pytest.mark.parametrize("dialect", ["kubevirt", "stakater", "vitistack", "virtrigaud"])
def test_new_machines_of_the_dialects(console: ConsoleProgram, dialect: str) -> None:
    form = {
        "image": "https://images.example.com/disk.qcow2",
        "dialect": dialect,
        "namespace": NAMESPACE,
        "name": f"new-{dialect}",
        "start": False,
    }
    made = console.post("compose", form)
    assert made.status == 200 and made.json["errors"] == [], made.body
    reply = console.post("apply", {"yaml": made.json["yaml"], "dryRun": False, "force": False})
    if dialect == "stakater":
        # Its disks are copies of a DataSource, and CDI's have claims and no addresses.
        assert reply.status == 400 and "does not have spec.source.http" in reply.error["message"], reply.body
    elif dialect in console.get("me")["dialects"]:
        assert reply.status == 200, reply.body
        (place,) = made.json["machines"]
        assert row(console, f"machines/{place}")["dialect"] == dialect
    else:
        assert reply.status == 400 and "the server has no kind" in reply.error["message"], reply.body


def test_what_only_paddocks_own_server_has_is_named(console: ConsoleProgram) -> None:
    me = console.get("me")
    missing = {each["what"]: each["why"] for each in me["missing"]}
    assert (me["own"], me["dialects"]) == (False, ["kubevirt", "stakater", "vitistack"])
    assert {"virtrigaud", "kubermatic", "history", "checks", "suspend", "usage", "providers"} <= missing.keys()
    assert not {"list", "create", "snapshots", "volumes"} & missing.keys()
    assert "keeps no history" in console.get(f"{WEB}/usage")["missing"]
    host = console.get("host")
    assert [each["name"] for each in host["nodes"]] == ["node"] and host["checks"] == []
    actions = {each["verb"]: each for each in console.get(WEB)["actions"]}
    assert actions["suspend"] == {"verb": "suspend", "allowed": False, "reason": missing["suspend"]}
    reply = console.post(f"{WEB}/actions/suspend")
    assert reply.status == 400 and "cannot suspend" in reply.error["message"]


# --- rights -----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def viewer(console: ConsoleProgram, real: Real, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleProgram]:
    """A ServiceAccount that may look into one namespace, signed in with its token."""
    api, directory = real.cluster.api, tmp_path_factory.mktemp("viewer")
    groups = ["", "cdi.kubevirt.io", "infrastructure.stakater.com"]
    rules = [{"apiGroups": groups, "resources": ["*"], "verbs": ["get", "list", "watch"]}]
    subjects = [{"kind": "ServiceAccount", "name": "viewer", "namespace": NAMESPACE}]
    roles, bindings = (f"{RBAC}/namespaces/{NAMESPACE}/{each}" for each in ("roles", "rolebindings"))

    def bound(name: str, kind: str, role: str) -> Json:
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
        return {"metadata": {"name": name}, "roleRef": ref, "subjects": subjects}

    for path, document in (
        (f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": {"name": "viewer"}}),
        (roles, {"metadata": {"name": "look"}, "rules": rules}),
        (bindings, bound("look", "Role", "look")),
        # KubeVirt's own role for those who may look.
        (bindings, bound("kubevirt", "ClusterRole", "kubevirt.io:view")),
    ):
        assert (answer := api.request("POST", path, document)).ok, answer.message
    token = api.request("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/viewer/token", {"spec": {}}).body["status"]["token"]
    with serving_console(real.cluster.access.kubeconfig, directory / "log", "-n", NAMESPACE, "--login", "token") as program:
        assert program.sign_in("wrong").status == 401
        assert program.sign_in(token).json == {"text": f"signed in as system:serviceaccount:{NAMESPACE}:viewer"}
        yield program
        assert "report this" not in program.said()


def test_a_viewer_sees_one_namespace(viewer: ConsoleProgram) -> None:
    me = viewer.get("me")
    assert (me["user"], me["namespaces"]) == (f"system:serviceaccount:{NAMESPACE}:viewer", [NAMESPACE])
    missing = {each["what"]: each["why"] for each in me["missing"]}
    assert "create" in missing and "list" not in missing
    lacks = {each["what"]: each["why"] for each in viewer.get(f"rights/vm/{NAMESPACE}")["missing"]}
    assert {"create", "start", "stop", "pause", "protect", "delete", "snapshot", "clone"} <= lacks.keys()
    assert lacks["start"].startswith("the user may not update virtualmachines/start of subresources.kubevirt.io")
    assert f"vm/{NAMESPACE}/web" in [each["id"] for each in resets(viewer, "machines", "events")["machines"]]
    assert viewer.get("host") == {"nodes": [], "checks": []}


def test_a_viewer_changes_nothing(viewer: ConsoleProgram, real: Real) -> None:
    before = real.get(f"{MACHINES}/web")["spec"]
    actions = viewer.get(WEB)["actions"]
    assert [each["verb"] for each in actions if each["allowed"]] == []
    assert {each["verb"] for each in actions if each["reason"].startswith("the user may not")} >= {"stop", "restart", "pause", "delete"}
    for verb in ("stop", "restart", "pause", "protect", "snapshot", "clone", "delete"):
        reply = viewer.post(f"{WEB}/actions/{verb}", {"options": {"name": "taken"}})
        assert reply.status == 403 and f"{NAMESPACE}:viewer" in reply.error["message"], (verb, reply.body)
    changed = {**MACHINE, "spec": {**MACHINE["spec"], "runStrategy": "Halted"}}
    assert viewer.post("apply", {"yaml": yaml.safe_dump(changed), "dryRun": False, "force": True}).status == 403
    assert viewer.ask("DELETE", f"{API}objects/snapshot.kubevirt.io/VirtualMachineSnapshot/{NAMESPACE}/web-snapshot").status == 403
    assert real.get(f"{MACHINES}/web")["spec"] == before


# --- a cluster without KubeVirt ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bare(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Access, Path]]:
    """A cluster that has Kubernetes' own kinds alone, and the kubeconfig of a user with a client certificate."""
    directory = tmp_path_factory.mktemp("bare")
    authority = Authority(directory / "pki")
    rules = Rules(authorization="RBAC", flags=(f"--client-ca-file={authority.certificate_file}",))
    with running(binaries, directory, rules) as access:
        document = yaml.safe_load(write_kubeconfig(directory / "ada", access.url, "", access.authority).read_text())
        files = {name: directory / f"ada.{name}" for name in ("crt", "key")}
        for path, content in zip(files.values(), authority.client("ada", ("system:masters",)), strict=True):
            write_private(path, content)
        document["users"] = [{"name": "admin", "user": {"client-certificate": str(files["crt"]), "client-key": str(files["key"])}}]
        (directory / "ada").write_text(yaml.safe_dump(document))
        yield access, directory / "ada"


def test_a_cluster_without_kubevirt_says_what_it_lacks(bare: tuple[Access, Path], tmp_path: Path) -> None:
    with serving_console(bare[1], tmp_path / "log") as program:
        program.follow()
        me = program.get("me")
        assert (me["user"], me["own"], me["dialects"]) == ("ada", False, [])
        missing = {each["what"]: each["why"] for each in me["missing"]}
        assert "install KubeVirt" in missing["list"] and missing["create"] == missing["list"]
        assert {"power", "console", "vnc", "snapshots", "images", "networks", "pools", "migrations"} <= missing.keys()
        assert "volumes" not in missing
        found = resets(program, *TOPICS)
        assert [topic for topic in TOPICS if found[topic]] in ([], ["events"])
        refused = program.ask("GET", f"{API}machines/vm/default/web")
        assert (refused.status, refused.error["message"]) == (404, 'there is no machine "vm/web" in namespace "default"')
        reply = program.post("apply", {"yaml": yaml.safe_dump(MACHINE), "dryRun": False, "force": False})
        assert reply.status == 400 and "the server has no kind VirtualMachine" in reply.error["message"], reply.body
        # The link and the address, and no complaint.
        assert program.said().count("\n") == 2, program.said()


# --- in a browser -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium; an error that a page logs fails the tests."""
    found = shutil.which("chromium")
    if found is None:
        pytest.skip("needs chromium: there is none")
    one = Browser(chromium.environment(), found)
    PICTURES.mkdir(parents=True, exist_ok=True)
    yield one
    wrong = one.wrong()
    one.end()
    assert wrong == []


def test_the_pages_of_a_cluster_in_a_browser(console: ConsoleProgram, browser: Browser) -> None:
    page = browser.open(console.address, storage_state=console.stored())
    for name in ("web", "shop"):
        page.see(f"role=grid >> role=link[name='{name}']")
    page.picture(PICTURES / "machines.png")
    page.open_machine("web")
    page.see(".machine-title .state:text-is('Running')")
    page.picture(PICTURES / "machine.png")
    for tab, content in (("Usage", "keeps no history of use"), ("Events", "SuccessfulCreate")):
        page.click(f"role=tab[name=/^{tab}/]")
        page.see(f"text={content}")
    page.goto(f"{console.address}#/host")
    page.see("h1:text-is('Nodes')")
    page.miss("text=Checks of this host")


def test_a_viewer_in_a_browser(viewer: ConsoleProgram, browser: Browser) -> None:
    page = browser.open(viewer.address, storage_state=viewer.stored())
    page.open_machine("web")
    page.see("role=button[name='Stop'][disabled=true]")
    reason = page.attribute("role=button[name='Stop']", "aria-describedby")
    assert "may not update virtualmachines/stop" in page.evaluate("(id) => document.getElementById(id).textContent", reason)
    page.picture(PICTURES / "viewer.png")


def test_a_cluster_without_kubevirt_in_a_browser(bare: tuple[Access, Path], browser: Browser, tmp_path: Path) -> None:
    with serving_console(bare[1], tmp_path / "log") as program:
        page = browser.open(program.link)
        page.see("text=install KubeVirt in the cluster")
        page.picture(PICTURES / "bare.png")
        for path, title in (("images", "Images"), ("volumes", "Volumes"), ("host", "Nodes"), ("settings", "Settings")):
            page.goto(f"{program.address}#/{path}")
            page.see(f"h1:text-is('{title}')")
