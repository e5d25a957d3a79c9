"""The newest kubectl: its discovery of the server, and its output."""

import http.client
import json
import subprocess
from typing import Any
from urllib.parse import urlsplit

import pytest

from paddock.kubernetes import catalog
from paddock.server.builtin import tabled
from paddock.server.kindtable import table
from tests.reference.client import TABLE, Api, Kubectl
from tests.reference.embedded import Embedded

pytestmark = [pytest.mark.reference, pytest.mark.usefixtures("crates")]
CRATE = {"apiVersion": "reference.paddock.example/v1", "kind": "Crate", "spec": {"color": "red", "replicas": 2}}
NO_COLUMNS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "plains.reference.paddock.example"},
    "spec": {
        "group": "reference.paddock.example",
        "scope": "Cluster",
        "names": {"plural": "plains", "kind": "Plain"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}],
    },
}
# Short names that VirtRigaud has as well, and that mean KubeVirt's kinds on a server.
OF_KUBEVIRT = {name for kind in catalog.every() if kind.dialect == "kubevirt" for name in kind.short_names}


def crates(namespace: str) -> str:
    return f"/apis/reference.paddock.example/v1/namespaces/{namespace}/crates"


def make(api: Api, namespace: str, name: str, **more: Any) -> dict[str, Any]:
    made = api.request("POST", crates(namespace), {**CRATE, "metadata": {"name": name}, **more})
    assert made.ok, made.message
    return made.body


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


@pytest.mark.spec("kube-api", 1)
def test_version(kubectl: Kubectl) -> None:
    said = json.loads(kubectl.ok("version", "-o", "json"))
    server = said["serverVersion"]
    assert (server["major"], server["gitVersion"].startswith(f"v1.{server['minor']}.")) == ("1", True)
    plain = kubectl.ok("version")
    assert f"Server Version: {server['gitVersion']}\n" in plain


@pytest.mark.spec("kube-api", 145)
def test_explain_reads_the_second_openapi(kubectl: Kubectl) -> None:
    said = kubectl.ok("explain", "--output=plaintext-openapiv2", "crates.spec.color", "--api-version=reference.paddock.example/v1")
    assert said.startswith("KIND:     Crate\nVERSION:  reference.paddock.example/v1\n\nFIELD:    color <string>\n")
    assert "FIELD:    data <map[string]string>" in kubectl.ok("explain", "--output=plaintext-openapiv2", "configmap.data")


@pytest.mark.spec("kube-api", 6)
def test_api_resources_are_the_declared_kinds_each_once(kubectl: Kubectl) -> None:
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for resource in json.loads(kubectl.ok("api-resources", "-o", "json"))["resources"]:
        place = (resource.get("group", ""), resource["name"])
        assert place not in found
        found[place] = resource
    wide = kubectl.ok("api-resources", "-o", "wide").splitlines()
    assert len(wide) == len(found) + 1
    for row in (table.kinds()[place] for place in tabled.PLACES):
        entry = found.pop((row.group, row.plural))
        told = (entry["kind"], entry["namespaced"], set(entry.get("shortNames", ())), set(entry.get("categories", ())))
        assert told == (row.kind, not row.cluster, set(row.short_names), set(row.categories)), row.plural
    for (group, review), namespaced in tabled.REVIEWS.items():
        entry = found.pop((group, f"{review.lower()}s"))
        assert (entry["kind"], entry["namespaced"], entry["verbs"]) == (review, namespaced, ["create"])
    for kind in catalog.every():
        shown = found.pop((kind.group, kind.plural), None)
        if shown is None:
            continue  # another version of a kind that is shown
        said = (shown["kind"], shown["namespaced"], set(shown.get("shortNames", ())), set(shown.get("categories", ())))
        names = set(kind.short_names) - (OF_KUBEVIRT if kind.dialect == "virtrigaud" else set())
        assert said == (kind.kind, kind.namespaced, names, set(kind.categories)), kind.plural
        verbs = {"create"} if not kind.stored else {"create", "delete", "get", "list", "patch", "update", "watch"}
        assert verbs <= set(shown["verbs"]), kind.plural
    # What remains is what no declaration names: definitions, and what a test of these has made.
    assert {name for _, name in found} <= {"customresourcedefinitions", "crates", "plains", "apiservices", "parcels"}


@pytest.mark.spec("kube-api", 10)
def test_explain_every_group(kubectl: Kubectl, api: Api) -> None:
    seen = set()
    for resource in json.loads(kubectl.ok("api-resources", "-o", "json"))["resources"]:
        group = resource.get("group", "")
        if group in seen and resource["name"] not in ("secrets", "crates", "virtualmachines"):
            continue
        seen.add(group)
        name, version = resource["name"], f"{group}/{resource['version']}" if group else resource["version"]
        text = kubectl.ok("explain", name, f"--api-version={version}", "--recursive")
        assert f"KIND:       {resource['kind']}\n" in text
        assert "FIELDS:" in text or group in ("authentication.k8s.io", "authorization.k8s.io"), name
    documents = api.request("GET", "/openapi/v3").body["paths"]
    assert len(documents) > len(seen)
    for about in documents.values():
        document = api.request("GET", about["serverRelativeURL"]).body
        schemas = {f"#/components/schemas/{name}" for name in document.get("components", {}).get("schemas", {})}
        assert set(references(document)) <= schemas


def references(document: Any) -> Any:
    """Every `$ref` below a place."""
    for value in document.values() if isinstance(document, dict) else document:
        if isinstance(value, dict | list):
            yield from references(value)
    if isinstance(document, dict) and isinstance(document.get("$ref"), str):
        yield document["$ref"]


@pytest.mark.spec("kube-api", 16)
def test_what_is_not_there(kubectl: Kubectl) -> None:
    unknown = kubectl.run("get", "unicorns")
    assert (unknown.code, unknown.errors) == (1, 'error: the server doesn\'t have a resource type "unicorns"\n')
    path = kubectl.run("get", "--raw", "/unicorns")
    assert (path.code, "the server could not find the requested resource" in path.errors) == (1, True)
    gone = kubectl.run("get", "configmap", "unicorn")
    assert (gone.code, gone.errors) == (1, 'Error from server (NotFound): configmaps "unicorn" not found\n')


@pytest.mark.spec("kube-api", 40)
def test_columns_are_those_of_the_definition(kubectl: Kubectl, api: Api, namespace: str) -> None:
    make(api, namespace, "one")
    there = ("-n", namespace)
    assert rows(kubectl.ok("get", "crates", *there))[0] == ["NAME", "COLOR", "AGE"]
    assert rows(kubectl.ok("get", "crt", "one", "-o", "wide", *there)) == [["NAME", "COLOR", "REPLICAS", "AGE"], ["one", "red", "2", ANY]]
    kubectl.ok("apply", "-f", "-", stdin=json.dumps(NO_COLUMNS))
    kubectl.ok("wait", "--for=condition=Established", "crd/plains.reference.paddock.example")
    kubectl.ok("create", "-f", "-", stdin='{"apiVersion":"reference.paddock.example/v1","kind":"Plain","metadata":{"name":"flat"}}')
    for form in ((), ("-o", "wide")):
        assert rows(kubectl.ok("get", "plains", *form)) == [["NAME", "AGE"], ["flat", ANY]]
    kubectl.ok("delete", "crd", "plains.reference.paddock.example")


class _Any:
    """Equal to everything."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


ANY = _Any()


@pytest.mark.spec("kube-api", 69)
def test_a_watch_of_rows(kubectl: Kubectl, api: Api, embedded: Embedded, namespace: str) -> None:
    make(api, namespace, "one")
    events = table_events(embedded, f"{crates(namespace)}?watch=true&timeoutSeconds=3", lambda: make(api, namespace, "raw"))
    assert [event["type"] for event in events] == ["ADDED", "ADDED"]
    assert [column["name"] for column in events[0]["object"]["columnDefinitions"]] == ["Name", "Color", "Replicas", "Age"]
    assert not events[1]["object"].get("columnDefinitions")
    assert events[1]["object"]["rows"][0]["cells"][:2] == ["raw", "red"]

    command = [str(kubectl.program), "get", "crates", "-n", namespace, "-w"]
    environment = {"KUBECONFIG": str(embedded.kubeconfig), "HOME": str(kubectl.home)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as run:
        assert run.stdout is not None
        try:
            shown = [run.stdout.readline().split() for _ in range(3)]
            assert [shown[0], *(row[:2] for row in shown[1:])] == [["NAME", "COLOR", "AGE"], ["one", "red"], ["raw", "red"]]
            make(api, namespace, "two")
            assert run.stdout.readline().split()[:2] == ["two", "red"]
            assert api.request("DELETE", f"{crates(namespace)}/two").ok
            assert run.stdout.readline().split()[:2] == ["two", "red"]
        finally:
            run.terminate()


def table_events(embedded: Embedded, target: str, act: Any) -> list[dict[str, Any]]:
    """The lines of a watch of Tables, with something done while it is open."""
    access = embedded.access
    url = urlsplit(access.url)
    connection = http.client.HTTPSConnection(url.hostname or "", url.port, context=access.tls(), timeout=30)
    connection.request("GET", target, headers={"Accept": TABLE, "Authorization": f"Bearer {access.token}"})
    reply = connection.getresponse()
    act()
    lines = [json.loads(line) for line in reply]
    connection.close()
    return lines


EVENT = {
    "metadata": {"name": "one.1"},
    "reason": "Packed",
    "message": "it is packed",
    "type": "Normal",
    "count": 3,
    "source": {"component": "packer"},
}


def test_describe_shows_events(kubectl: Kubectl, api: Api, namespace: str) -> None:
    made = make(api, namespace, "one")
    about = {"apiVersion": made["apiVersion"], "kind": "Crate", "name": "one", "namespace": namespace, "uid": made["metadata"]["uid"]}
    times = dict.fromkeys(("firstTimestamp", "lastTimestamp"), made["metadata"]["creationTimestamp"])
    assert api.request("POST", f"/api/v1/namespaces/{namespace}/events", {**EVENT, **times, "involvedObject": about}).ok
    there = ("-n", namespace)
    shown = kubectl.ok("describe", "crate", "one", *there)
    assert "it is packed" in shown.partition("Events:")[2]
    assert "Color:     red" in shown
    for command in (("events",), ("events", "--for", "crate/one"), ("get", "events"), ("get", "events.events.k8s.io")):
        assert "it is packed" in kubectl.ok(*command, *there), command


OUTPUTS = [
    (("-o", "name"), "crate.reference.paddock.example/one\n"),
    (("-o", "jsonpath={.items[*].spec.color}"), "red"),
    (("-o", "go-template={{range .items}}{{.metadata.name}}{{end}}"), "one"),
    (("-o", "custom-columns=N:.metadata.name,C:.spec.color", "--no-headers"), "one   red\n"),
    (("--sort-by=.metadata.name", "-o", "name"), "crate.reference.paddock.example/one\n"),
    (("-l", "a notin (b)", "-o", "name"), "crate.reference.paddock.example/one\n"),
    (("-l", "a", "-o", "name"), ""),
    (("--field-selector", "metadata.name=one", "-o", "name"), "crate.reference.paddock.example/one\n"),
    (("--field-selector", "metadata.name!=one", "-o", "name"), ""),
]


@pytest.mark.parametrize(("options", "wanted"), OUTPUTS)
def test_outputs(kubectl: Kubectl, api: Api, namespace: str, options: tuple[str, ...], wanted: str) -> None:
    make(api, namespace, "one")
    assert kubectl.ok("get", "crates", "-n", namespace, *options) == wanted


SHOWN = [
    (("get", "all", "-A"), "service/kubernetes"),
    (("get", "crates,configmaps", "-A"), "configmap/kube-root-ca.crt"),
    (("cluster-info",), "Kubernetes control plane is running at"),
    (("api-versions",), "infrastructure.stakater.com/v1"),
    (("config", "view"), "current-context: paddock"),
    (("get", "--raw", "/readyz?verbose"), "readyz check passed"),
    (("auth", "whoami"), "system:masters"),
    (("describe", "nodes"), "ServerReady"),
    (("describe", "services", "kubernetes"), "443/TCP"),
    (("describe", "namespace", "default"), "Active"),
    (("describe", "crd", "crates.reference.paddock.example"), "Crate"),
    (("get", "pods", "-A"), ""),
]


@pytest.mark.parametrize(("command", "part"), SHOWN)
def test_shown(kubectl: Kubectl, command: tuple[str, ...], part: str) -> None:
    assert part in kubectl.ok(*command)


def test_a_dump_of_everything(kubectl: Kubectl) -> None:
    assert '"kind": "NodeList"' in kubectl.ok("cluster-info", "dump")


REFUSED = [
    (("top", "nodes"), "Metrics API not available"),
    (("top", "pods"), "Metrics API not available"),
    (("logs", "p"), 'pods "p" not found'),
    (("exec", "p", "--", "ls"), 'pods "p" not found'),
    (("port-forward", "p", "80"), 'pods "p" not found'),
    (("attach", "p"), 'pods "p" not found'),
    (("delete", "pod", "p"), 'pods "p" not found'),
    (("rollout", "status", "deploy/d"), 'deployments.apps "d" not found'),
    (("get", "configmaps", "-l", "a in (b"), "unable to parse requirement"),
    (("create", "token", "nobody"), 'serviceaccounts "nobody" not found'),
]


STORED = [
    (("run", "stored", "--image=x"), "pod", "Pending"),
    (("create", "deployment", "stored", "--image=x"), "deployment", "0/1"),
    (("create", "job", "stored", "--image=x"), "job", "Running"),
    (("create", "cronjob", "stored", "--image=x", "--schedule=* * * * *"), "cronjob", "* * * * *"),
]


@pytest.mark.spec("kube-api", 151)
@pytest.mark.parametrize(("command", "kind", "shown"), STORED)
def test_workloads_are_stored_and_shown(kubectl: Kubectl, command: tuple[str, ...], kind: str, shown: str) -> None:
    kubectl.ok(*command)
    assert shown in kubectl.ok("get", kind, "stored")
    kubectl.ok("delete", kind, "stored")


@pytest.mark.parametrize(("command", "part"), REFUSED)
def test_refused_in_words_that_help(kubectl: Kubectl, command: tuple[str, ...], part: str) -> None:
    ran = kubectl.run(*command)
    assert (ran.code, part in ran.errors) == (1, True), ran
