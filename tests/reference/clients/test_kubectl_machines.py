"""KubeVirt's kinds through kubectl: how they are found and shown, every way to write them, waiting, and how they go."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.reference.client import MERGE_PATCH, Api, Kubectl

pytestmark = pytest.mark.reference
Json = dict[str, Any]
VM, VMIRS, VMPOOL = (
    "virtualmachines.kubevirt.io",
    "virtualmachineinstancereplicasets.kubevirt.io",
    "virtualmachinepools.pool.kubevirt.io",
)
SPEC: Json = {"domain": {"cpu": {"cores": 1}, "memory": {"guest": "128Mi"}, "devices": {}}}


def machine(name: str = "web", cores: int = 1, metadata: Json | None = None, **more: Any) -> Json:
    hardware = {"domain": {**SPEC["domain"], "cpu": {"cores": cores}}}
    spec = {"runStrategy": "Halted", "template": {"spec": hardware}, **more}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": name, **(metadata or {})}, "spec": spec}


def pool(name: str = "many") -> Json:
    labels = {"labels": {"of": name}}
    template = {"metadata": labels, "spec": {"runStrategy": "Halted", "template": {"metadata": labels, "spec": SPEC}}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"of": name}}, "virtualMachineTemplate": template}
    return {"apiVersion": "pool.kubevirt.io/v1beta1", "kind": "VirtualMachinePool", "metadata": {"name": name}, "spec": spec}


def replica_set(name: str = "few") -> Json:
    template = {"metadata": {"labels": {"of": name}}, "spec": SPEC}
    spec = {"replicas": 2, "selector": {"matchLabels": {"of": name}}, "template": template}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceReplicaSet", "metadata": {"name": name}, "spec": spec}


def instance(name: str = "alone") -> Json:
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": name}, "spec": SPEC}


class Place:
    """A namespace, seen with one kubectl."""

    def __init__(self, kubectl: Kubectl, api: Api, namespace: str) -> None:
        self.kubectl = kubectl
        self.api = api
        self.namespace = namespace

    def ok(self, *arguments: str, document: Json | None = None) -> str:
        return self.kubectl.ok(*arguments, "-n", self.namespace, stdin=json.dumps(document) if document else "")

    def refused(self, *arguments: str, document: Json | None = None) -> str:
        ran = self.kubectl.run(*arguments, "-n", self.namespace, stdin=json.dumps(document) if document else "")
        assert ran.code == 1, ran.output
        return ran.errors

    def make(self, *documents: Json) -> None:
        for document in documents:
            self.ok("create", "-f", "-", document=document)

    def stored(self, resource: str = VM, name: str = "web") -> Json:
        found: Json = json.loads(self.ok("get", resource, name, "-o", "json", "--show-managed-fields"))
        return found

    def tell(self, status: Json, name: str = "web") -> None:
        """Write a status as controllers would."""
        path = f"/apis/kubevirt.io/v1/namespaces/{self.namespace}/virtualmachines/{name}/status"
        answer = self.api.request("PATCH", path, {"status": status}, headers=MERGE_PATCH)
        assert answer.ok, answer.message

    @contextmanager
    def begun(self, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
        """A kubectl that goes on while the test does something."""
        environment = {"KUBECONFIG": str(self.kubectl.access.kubeconfig), "HOME": str(self.kubectl.home)}
        command = [str(self.kubectl.program), *arguments, "-n", self.namespace]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment) as run:
            try:
                yield run
            finally:
                run.kill()


@pytest.fixture
def place(kubectl: Kubectl, api: Api, namespace: str) -> Place:
    return Place(kubectl, api, namespace)


NAMES = {
    VM: ("vm", "vms", "virtualmachine"),
    "virtualmachineinstances.kubevirt.io": ("vmi", "vmis", "virtualmachineinstance"),
    VMIRS: ("vmirs", "vmirss"),
    VMPOOL: ("vmpool", "vmpools"),
}
READY = {"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": None}


def columns(text: str) -> list[str]:
    return text.splitlines()[0].split()


@pytest.mark.spec("kubevirt", 52)
def test_machines_are_found_and_shown(place: Place) -> None:
    wide = place.kubectl.ok("api-resources", "-o", "wide", "--categories=all", "--api-group=kubevirt.io")
    for line in ("virtualmachines vm,vms kubevirt.io/v1 true VirtualMachine", "virtualmachineinstances vmi,vmis kubevirt.io/v1 true"):
        assert any(" ".join(each.split()).startswith(line) for each in wide.splitlines()), wide
    explained = place.kubectl.ok("explain", "vm.spec.template.spec.domain.cpu")
    assert "KIND:       VirtualMachine\n" in explained and "FIELD: cpu <Object>\n" in explained
    for member in ("cores", "sockets", "threads", "model", "dedicatedCpuPlacement"):
        assert f"  {member}\t<" in explained, member

    place.make(machine(), instance(), replica_set(), pool())
    place.tell({"printableStatus": "Running", "ready": True, "conditions": [READY]})
    everything = place.ok("get", "all", "-o", "name").split()
    assert {f"{VM.replace('s.', '.', 1)}/web", "virtualmachineinstance.kubevirt.io/alone"} <= set(everything)
    assert {"virtualmachineinstancereplicaset.kubevirt.io/few", "virtualmachinepool.pool.kubevirt.io/many"} <= set(everything)
    for resource, short in NAMES.items():
        full = place.ok("get", resource, "-o", "name")
        assert full
        assert {place.ok("get", each, "-o", "name") for each in short} == {full}, resource

    heads, row = place.ok("get", "vm").splitlines()
    assert (heads.split(), row.split()[0], row.split()[2:]) == (["NAME", "AGE", "STATUS", "READY"], "web", ["Running", "True"])
    narrow, broad = columns(place.ok("get", "vmi")), columns(place.ok("get", "vmi", "-o", "wide"))
    assert narrow == ["NAME", "AGE", "PHASE", "IP", "NODENAME", "READY"]
    assert broad == [*narrow, "LIVE-MIGRATABLE", "PAUSED"]
    shown = yaml.safe_load(place.ok("get", "vm", "web", "-o", "yaml"))
    assert (shown["apiVersion"], shown["kind"]) == ("kubevirt.io/v1", "VirtualMachine")
    assert shown["spec"]["template"]["spec"]["domain"]["cpu"] == {"cores": 1}

    with place.begun("get", "vm", "-w") as watch:
        assert watch.stdout is not None
        assert [watch.stdout.readline().split()[0] for _ in range(2)] == ["NAME", "web"]
        place.tell({"printableStatus": "Stopping"})
        assert watch.stdout.readline().split()[2:] == ["Stopping", "True"]
        place.make(machine("second"))
        assert watch.stdout.readline().split()[0] == "second"
        place.ok("delete", VM, "second")
        assert watch.stdout.readline().split()[0] == "second"


@pytest.mark.spec("kubevirt", 1, 52)
@pytest.mark.parametrize(
    ("name", "resource"),
    [
        ("vm", "virtualmachines.kubevirt.io"),
        ("vmsnapshot", "virtualmachinesnapshots.snapshot.kubevirt.io"),
        ("vmclone", "virtualmachineclones.clone.kubevirt.io"),
        ("virtualmachine.infra.virtrigaud.io", "virtualmachines.infra.virtrigaud.io"),
        ("vmsnapshot.infra.virtrigaud.io", "vmsnapshots.infra.virtrigaud.io"),
        ("vmclone.infra.virtrigaud.io", "vmclones.infra.virtrigaud.io"),
    ],
)
def test_a_short_name_means_one_kind_without_a_warning(place: Place, name: str, resource: str) -> None:
    ran = place.kubectl.run("get", name, "-n", place.namespace, "-v=6")
    assert ran.code == 0 and "Warning" not in ran.errors
    plural, _, group = resource.partition(".")
    assert f"/apis/{group}/" in ran.errors and f"/namespaces/{place.namespace}/{plural}?" in ran.errors


def cores(found: Json) -> int:
    return int(found["spec"]["template"]["spec"]["domain"]["cpu"]["cores"])


@pytest.mark.spec("kubevirt", 53)
def test_machines_are_applied_in_both_ways(place: Place) -> None:
    said = [place.ok("apply", "-f", "-", document=machine(cores=count)).split()[-1] for count in (1, 1, 2)]
    assert said == ["created", "unchanged", "configured"]
    assert cores(place.stored()) == 2

    served = ("apply", "--server-side", "-f", "-")
    place.ok(*served, document=machine("served"))
    before = place.stored(name="served")
    place.ok(*served, document=machine("served"))
    assert place.stored(name="served") == before
    refused = place.refused(*served, "--field-manager=other", document=machine("served", cores=2))
    assert 'conflict with "kubectl": .spec.template.spec.domain.cpu.cores' in refused
    assert cores(place.stored(name="served")) == 1
    place.ok(*served, "--field-manager=other", "--force-conflicts", document=machine("served", cores=2))
    after = place.stored(name="served")
    owners = [
        each["manager"]
        for each in after["metadata"]["managedFields"]
        if "f:cores" in json.dumps(each["fieldsV1"]) and each["operation"] == "Apply"
    ]
    assert (cores(after), owners) == (2, ["other"])

    assert place.ok("diff", "-f", "-", document=machine(cores=2)) == ""
    different = place.kubectl.run("diff", "-f", "-", "-n", place.namespace, stdin=json.dumps(machine(cores=4)))
    assert different.code == 1
    assert "-          cores: 2" in different.output and "+          cores: 4" in different.output
    assert cores(place.stored()) == 2


@pytest.mark.spec("kubevirt", 53)
def test_machines_are_changed_in_every_way(place: Place, tmp_path: Path) -> None:
    place.make(machine())
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/cores: 1$/cores: 2/' \"$1\"\n")
    editor.chmod(0o755)
    client = Place(replace(place.kubectl, environment={"KUBE_EDITOR": str(editor)}), place.api, place.namespace)
    assert "edited" in client.ok("edit", VM, "web")
    assert cores(place.stored()) == 2
    place.ok("patch", VM, "web", "--type=merge", "-p", '{"spec":{"template":{"spec":{"domain":{"cpu":{"cores":3}}}}}}')
    assert cores(place.stored()) == 3
    at = "/spec/template/spec/domain/cpu/cores"
    place.ok(
        "patch",
        VM,
        "web",
        "--type=json",
        "-p",
        json.dumps([{"op": "test", "path": at, "value": 3}, {"op": "replace", "path": at, "value": 4}]),
    )
    assert cores(place.stored()) == 4
    place.refused(
        "patch", VM, "web", "--type=json", "-p", json.dumps([{"op": "test", "path": at, "value": 3}, {"op": "remove", "path": at}])
    )
    place.ok("replace", "-f", "-", document=machine(cores=5))
    assert cores(place.stored()) == 5
    place.ok("label", VM, "web", "tier=front", "gone=soon")
    place.ok("label", VM, "web", "gone-")
    place.ok("annotate", VM, "web", "note=it")
    meta = place.stored()["metadata"]
    assert (meta["labels"], meta["annotations"]["note"]) == ({"tier": "front"}, "it")
    # Only what the machine is made of counts as a generation.
    assert meta["generation"] == 5


@pytest.mark.spec("kubevirt", 53)
def test_machines_are_waited_for(place: Place) -> None:
    place.make(machine())
    for wanted in ("condition=Ready", "jsonpath={.status.printableStatus}=Running"):
        place.tell({"printableStatus": "Starting", "conditions": None})
        late = place.refused("wait", f"--for={wanted}", f"{VM}/web", "--timeout=1s")
        assert "timed out waiting for the condition" in late
        with place.begun("wait", f"--for={wanted}", f"{VM}/web", "--timeout=30s") as run:
            place.tell({"printableStatus": "Running", "conditions": [READY]})
            output, _ = run.communicate(timeout=60)
            assert (run.returncode, output) == (0, "virtualmachine.kubevirt.io/web condition met\n")


@pytest.mark.spec("kubevirt", 53)
def test_pools_and_replica_sets_are_scaled(place: Place) -> None:
    place.make(pool(), replica_set())
    for short, full, name in (("vmpool", VMPOOL, "many"), ("vmirs", VMIRS, "few")):
        assert "scaled" in place.ok("scale", short, name, "--replicas=4")
        assert place.stored(full, name)["spec"]["replicas"] == 4
        assert "Expected replicas to be 2, was 4" in place.refused("scale", short, name, "--current-replicas=2", "--replicas=1")
        assert "scaled" in place.ok("scale", short, name, "--current-replicas=4", "--replicas=0")
        assert place.stored(full, name)["spec"]["replicas"] == 0


@pytest.mark.spec("kubevirt", 53)
@pytest.mark.parametrize("policy", ["background", "foreground", "orphan"])
def test_machines_go_as_asked(place: Place, policy: str) -> None:
    place.make(machine())
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web", "uid": place.stored()["metadata"]["uid"]}
    meta = {"name": "owned", "ownerReferences": [{**owner, "blockOwnerDeletion": True}], "finalizers": ["test.example/hold"]}
    place.make({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
    place.ok("delete", VM, "web", f"--cascade={policy}", "--wait=false")
    if policy == "foreground":
        # It is there as long as what it owns is.
        place.ok("wait", "--for=jsonpath={.metadata.deletionTimestamp}", "configmap/owned", "--timeout=30s")
        going = place.stored()["metadata"]
        assert going["deletionTimestamp"] and going["finalizers"] == ["foregroundDeletion"]
    else:
        place.ok("wait", "--for=delete", f"{VM}/web", "--timeout=30s")
    if policy == "orphan":
        left = place.stored("configmap", "owned")["metadata"]
        assert "deletionTimestamp" not in left and "ownerReferences" not in left
        return
    place.ok("wait", "--for=jsonpath={.metadata.deletionTimestamp}", "configmap/owned", "--timeout=30s")
    place.ok("patch", "configmap", "owned", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    place.ok("wait", "--for=delete", "configmap/owned", f"{VM}/web", "--timeout=30s")


@pytest.mark.spec("kubevirt", 53)
def test_a_dry_run_changes_nothing(place: Place) -> None:
    dry = "--dry-run=server"
    shown = yaml.safe_load(place.ok("create", dry, "-f", "-", "-o", "yaml", document=machine()))
    assert shown["metadata"]["uid"] and shown["spec"]["template"]["spec"]["domain"]["cpu"] == {"cores": 1}
    assert "not found" in place.refused("get", VM, "web")
    place.make(machine(), pool())
    before = place.stored(), place.stored(VMPOOL, "many")
    place.ok("apply", "--server-side", "--force-conflicts", dry, "-f", "-", document=machine(cores=2))
    place.ok("replace", dry, "-f", "-", document=machine(cores=2))
    place.ok("patch", VM, "web", dry, "--type=merge", "-p", '{"spec":{"runStrategy":"Manual"}}')
    place.ok("label", VM, "web", dry, "a=b")
    place.ok("scale", "vmpool", "many", dry, "--replicas=7")
    place.ok("delete", VM, "web", dry)
    assert (place.stored(), place.stored(VMPOOL, "many")) == before
    assert "The request is invalid: " in place.refused("create", dry, "-f", "-", document=machine("bad", runStrategy="Never"))


DISK = "spec.template.spec.domain.devices.disks[0].name"


@pytest.mark.spec("kubevirt", 55)
def test_what_is_wrong_is_told_in_the_words_of_kubevirt(any_kubectl: Kubectl, api: Api, namespace: str) -> None:
    place = Place(any_kubectl, api, namespace)
    wrong = machine("bad")
    wrong["spec"]["template"]["spec"]["domain"] = {**SPEC["domain"], "devices": {"disks": [{"name": "lost", "disk": {}}]}}
    answer = api.request("POST", f"/apis/kubevirt.io/v1/namespaces/{namespace}/virtualmachines", wrong)
    assert (answer.status, answer.body["reason"], set(answer.body["details"])) == (422, "Invalid", {"causes"})
    (cause,) = answer.body["details"]["causes"]
    assert (cause["reason"], cause["field"]) == ("FieldValueInvalid", DISK)
    for verb in ("create", "apply"):
        assert place.refused(verb, "-f", "-", document=wrong) == f"The request is invalid: {DISK}: {cause['message']}\n"
    both = machine("bad", runStrategy="Never")
    both["spec"]["template"] = wrong["spec"]["template"]
    lines = place.refused("create", "-f", "-", document=both).splitlines()
    assert lines[0].startswith("The request is invalid: ")
    assert any(line.startswith(f"* {DISK}: ") for line in lines) and any(line.startswith("* spec.runStrategy: ") for line in lines), lines
    # What is wrong with any object is told as for any object.
    assert place.refused("create", "-f", "-", document=machine("Bad_")).startswith('The VirtualMachine "Bad_" is invalid: metadata.name: ')


@pytest.mark.spec("kubevirt", 57)
def test_a_stale_writer_is_refused_and_loops_end(place: Place) -> None:
    place.make(machine())
    stale = place.stored()
    place.ok("label", VM, "web", "by=other")
    said = place.refused("replace", "-f", "-", document=stale)
    assert 'Operation cannot be fulfilled on virtualmachines.kubevirt.io "web": the object has been modified' in said
    path = f"/apis/kubevirt.io/v1/namespaces/{place.namespace}/virtualmachines/web"
    for method, target in (("PUT", path), ("PUT", f"{path}/status"), ("PATCH", path)):
        old = {"metadata": {"resourceVersion": stale["metadata"]["resourceVersion"], "labels": {"by": "me"}}}
        body, headers = (old, MERGE_PATCH) if method == "PATCH" else (stale, None)
        answer = place.api.request(method, target, body, headers=headers)
        assert (answer.status, answer.body["reason"]) == (409, "Conflict"), target
    assert place.stored()["metadata"]["labels"] == {"by": "other"}
    # kubectl reads again and tries again by itself; eight of them at once all come to an end, and nobody's word is lost.
    runs = []
    for number in range(8):
        command = [str(place.kubectl.program), "annotate", VM, "web", f"n{number}=yes", "-n", place.namespace]
        environment = {"KUBECONFIG": str(place.kubectl.access.kubeconfig), "HOME": str(place.kubectl.home)}
        runs.append(subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
    for run in runs:
        _, errors = run.communicate(timeout=60)
        assert run.returncode == 0, errors
    assert {f"n{number}" for number in range(8)} <= place.stored()["metadata"]["annotations"].keys()


@pytest.mark.spec("kubevirt", 58)
def test_every_kubectl_discovers_explains_and_checks(any_kubectl: Kubectl, api: Api, namespace: str) -> None:
    place = Place(any_kubectl, api, namespace)
    found = any_kubectl.ok("api-resources", "--api-group=kubevirt.io", "-o", "name").split()
    assert {VM, VMIRS, "virtualmachineinstances.kubevirt.io"} <= set(found)
    assert "Cores per socket" in any_kubectl.ok("explain", f"{VM}.spec.template.spec.domain.cpu", "--output=plaintext")
    # The second version is read in its binary form.
    assert "dataVolumeTemplates" in any_kubectl.ok("explain", f"{VM}.spec", "--output=plaintext-openapiv2")
    definitions = api.request("GET", "/openapi/v2").body["definitions"].values()
    kinds = [kind for each in definitions for kind in each.get("x-kubernetes-group-version-kind", ())]
    assert kinds.count({"group": "kubevirt.io", "version": "v1", "kind": "VirtualMachine"}) == 1
    wrong = machine("bad")
    wrong["spec"]["template"]["spec"]["domain"] = {**SPEC["domain"], "cpus": 4}
    assert 'unknown field "spec.template.spec.domain.cpus"' in place.refused("create", "-f", "-", document=wrong)
    assert "created" in place.ok("create", "-f", "-", document=machine())
    legacy = api.request("GET", "/apis/kubevirt.io/v1").body
    assert {each["name"] for each in legacy["resources"]} >= {"virtualmachines", "virtualmachines/status", "virtualmachineinstances"}
    assert "kubevirt.io" in {each["name"] for each in api.request("GET", "/apis").body["groups"]}
    for version in ("v2", "v2beta1"):
        accept = {"Accept": f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"}
        groups = {each["metadata"]["name"]: each for each in api.request("GET", "/apis", headers=accept).body["items"]}
        listed = {each["resource"]: each for each in groups["kubevirt.io"]["versions"][0]["resources"]}
        assert listed["virtualmachines"]["shortNames"] == ["vm", "vms"]
        assert {each["subresource"] for each in listed["virtualmachines"]["subresources"]} >= {"status"}
