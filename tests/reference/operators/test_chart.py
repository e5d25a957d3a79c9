"""The charts, rendered by both helms: the document's names and defaults, rights word for word, and what a real server says of them."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.reference.build import Binaries
from tests.reference.operators.conftest import Cluster
from tests.reference.operators.helm import CHART, CHARTS, NAMESPACE, PADDOCK, Helm

pytestmark = pytest.mark.reference
_ALL = ["get", "list", "watch", "create", "update", "patch", "delete"]
# The document's own, in its order.
DOCUMENTED = [
    {"apiGroups": ["vitistack.io"], "resources": ["machines", "networkconfigurations"], "verbs": _ALL},
    {"apiGroups": ["kubevirt.io"], "resources": ["virtualmachines", "virtualmachineinstances"], "verbs": _ALL},
    {"apiGroups": [""], "resources": ["persistentvolumeclaims", "secrets", "configmaps"], "verbs": _ALL},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
]
_READ = ["get", "list", "watch"]
# group, resource, verbs: what is needed besides
ADDED = [
    ("vitistack.io", "machines/status", ["update", "patch"]),
    ("vitistack.io", "networkconfigurations/status", ["update", "patch"]),
    ("vitistack.io", "machines/finalizers", ["update"]),
    ("k8s.cni.cncf.io", "network-attachment-definitions", _ALL),
    ("storage.k8s.io", "storageclasses", _READ),
]


@pytest.fixture(params=[0, 1], ids=["helm-3", "helm-4"])
def helm(request: pytest.FixtureRequest, helms: list[Helm]) -> Helm:
    index: int = request.param
    return helms[index]


def find(objects: Any, kind: str, name: str) -> Any:
    (found,) = [each for each in objects if each["kind"] == kind and each["metadata"]["name"] == name]
    return found


def allows(rules: Any, group: str, resource: str, verbs: list[str]) -> bool:
    given = {verb for rule in rules if group in rule["apiGroups"] and resource in rule["resources"] for verb in rule["verbs"]}
    return set(verbs) <= given


@pytest.mark.spec("vitistack", 78)
def test_defaults(helm: Helm) -> None:
    assert helm.run("lint", "--strict", str(CHART)).returncode == 0
    values = yaml.safe_load(helm.run("show", "values", str(CHART)).stdout)
    version = yaml.safe_load(helm.run("show", "chart", str(CHART)).stdout)["version"]
    # The document's image is another project's; ours has no registry.
    assert values["image"] == {"repository": "localhost/paddock-operator", "tag": "", "digest": "", "pullPolicy": "IfNotPresent"}
    assert values["replicaCount"] == 1
    assert values["resources"] == {"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "100m", "memory": "256Mi"}}
    assert (values["nodeSelector"], values["tolerations"], values["affinity"]) == ({}, [], {})
    objects = helm.template(CHART)
    deployment = find(objects, "Deployment", "kubevirt-operator-controller-manager")
    assert deployment["metadata"]["namespace"] == NAMESPACE
    assert deployment["spec"]["replicas"] == 1
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert (container["image"], container["imagePullPolicy"]) == (f"localhost/paddock-operator:{version}", "IfNotPresent")
    assert container["resources"] == values["resources"]
    assert {"nodeSelector", "tolerations", "affinity"}.isdisjoint(pod)
    assert pod["serviceAccountName"] == find(objects, "ServiceAccount", "kubevirt-operator-controller-manager")["metadata"]["name"]
    environment = {each["name"]: each.get("value") for each in container["env"]}
    assert environment == {
        "NAMESPACE": None,
        "RECONCILE_INTERVAL": "30s",
        "MAX_CONCURRENT_RECONCILES": "5",
        "METRICS_BIND_ADDRESS": ":8080",
        "HEALTH_PROBE_BIND_ADDRESS": ":8081",
        "LEADER_ELECTION": "true",
    }
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert ports == {"metrics": 8080, "health": 8081}
    assert [container[probe]["httpGet"] for probe in ("livenessProbe", "readinessProbe")] == [
        {"path": "/healthz", "port": "health"},
        {"path": "/readyz", "port": "health"},
    ]


def test_values_have_an_effect(helm: Helm) -> None:
    given = ["image.tag=v9", "replicaCount=2", "nodeSelector.disk=ssd", "tolerations[0].operator=Exists", "resources.limits.cpu=1"]
    given += ["settings.METRICS_BIND_ADDRESS=0", "dialects={stakater,kubermatic}", "front.secretName=front", "args={--log-level=debug}"]
    objects = helm.template(CHART, *(part for each in given for part in ("--set", each)))
    spec = find(objects, "Deployment", "kubevirt-operator-controller-manager")["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert (spec["replicas"], container["image"].rpartition(":")[2], pod["nodeSelector"]) == (2, "v9", {"disk": "ssd"})
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert container["resources"]["limits"] == {"cpu": 1, "memory": "512Mi"}
    assert container["args"] == ["--dialect=stakater,kubermatic", "--front=/etc/paddock/front/kubeconfig", "--log-level=debug"]
    assert [each["name"] for each in container["ports"]] == ["health"]
    assert [each["metadata"]["name"] for each in objects if each["kind"] == "Service"] == ["kubevirt-operator-health"]
    assert {each["metadata"]["name"] for each in objects if each["kind"] == "CustomResourceDefinition"} == {
        "virtualmachines.infrastructure.stakater.com"
    }


def test_leases_can_lie_in_a_namespace_that_releases_share(helm: Helm) -> None:
    objects = helm.template(PADDOCK, "--set", "leaderElection.namespace=leases")
    assert find(objects, "Role", f"{NAMESPACE}-paddock-leader-election")["metadata"]["namespace"] == "leases"
    binding = find(objects, "RoleBinding", f"{NAMESPACE}-paddock-leader-election")
    assert (binding["metadata"]["namespace"], binding["subjects"][0]["namespace"]) == ("leases", NAMESPACE)
    (container,) = find(objects, "Deployment", "paddock")["spec"]["template"]["spec"]["containers"]
    assert {"name": "NAMESPACE", "value": "leases"} in container["env"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("dialects={qemu}", "there is no front door"),
        ("dialects={kubermatic}", "needs front.secretName"),
        ("dialects=null", "name at least one"),
    ],
)
def test_values_that_are_refused(helm: Helm, given: str, words: str) -> None:
    ran = helm.run("template", "x", str(CHART), "--kube-version", "1.34", "--set", given)
    assert ran.returncode != 0
    assert words in ran.stderr


@pytest.mark.spec("vitistack", 79)
def test_rights(helm: Helm) -> None:
    objects = helm.template(CHART)
    rules = find(objects, "ClusterRole", "kubevirt-operator")["rules"]
    assert rules[: len(DOCUMENTED)] == DOCUMENTED
    for group, resource, verbs in ADDED:
        assert allows(rules, group, resource, verbs), (group, resource)
    binding = find(objects, "ClusterRoleBinding", "kubevirt-operator-manager-rolebinding")
    account = {"kind": "ServiceAccount", "name": "kubevirt-operator-controller-manager", "namespace": NAMESPACE}
    assert (binding["roleRef"]["name"], binding["subjects"]) == ("kubevirt-operator", [account])
    # Leases in its own namespace, and nowhere else.
    lease = find(objects, "Role", "kubevirt-operator-leader-election")
    assert lease["metadata"]["namespace"] == NAMESPACE
    assert allows(lease["rules"], "coordination.k8s.io", "leases", ["get", "create", "update"])
    assert not allows(rules, "coordination.k8s.io", "leases", ["get"])
    assert find(objects, "RoleBinding", "kubevirt-operator-leader-election")["subjects"] == [account]
    # Nothing is allowed to everything.
    assert not any("*" in rule.get(part, ()) for rule in rules for part in ("apiGroups", "resources", "verbs"))


def test_definitions_stay_when_the_release_goes(helm: Helm) -> None:
    definitions = [each for each in helm.template(CHART) if each["kind"] == "CustomResourceDefinition"]
    folder = CHART.parents[2] / "api" / "crds" / "vitistack"
    assert {each["metadata"]["name"] for each in definitions} == {path.stem for path in folder.glob("*.yaml")}
    for each in definitions:
        assert each["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
        assert each["spec"] == yaml.safe_load((folder / f"{each['metadata']['name']}.yaml").read_text())["spec"]
    assert not [each for each in helm.template(CHART, "--set", "definitions=false") if each["kind"] == "CustomResourceDefinition"]


SWITCHES = ("podDisruptionBudget", "networkPolicy", "serviceMonitor", "dashboards")


@pytest.mark.parametrize("chart", [CHART, PADDOCK], ids=lambda chart: str(chart.name))
def test_every_switch(helm: Helm, chart: Path) -> None:
    assert helm.run("lint", "--strict", str(chart)).returncode == 0
    kinds = {}
    for state in ("false", "true"):
        objects = helm.template(chart, *(word for each in SWITCHES for word in ("--set", f"{each}.enabled={state}")))
        kinds[state] = {each["kind"] for each in objects}
    assert kinds["true"] - kinds["false"] == {"PodDisruptionBudget", "NetworkPolicy", "ServiceMonitor", "ConfigMap"}
    monitor = next(each for each in objects if each["kind"] == "ServiceMonitor")
    service = next(each for each in objects if each["kind"] == "Service")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert [each["port"] for each in monitor["spec"]["endpoints"]] == [each["name"] for each in service["spec"]["ports"]]
    (dashboard,) = [each["data"] for each in objects if each["kind"] == "ConfigMap"]
    assert json.loads(dashboard["paddock-operator.json"])["uid"] == "paddock-operator"


def test_the_network_policy_lets_nobody_but_the_named_read_metrics(helm: Helm) -> None:
    (policy,) = [each for each in helm.template(PADDOCK) if each["kind"] == "NetworkPolicy"]
    assert policy["spec"]["ingress"] == [{"ports": [{"port": 8081, "protocol": "TCP"}]}]
    peer = "networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.team=monitoring"
    (policy,) = [each for each in helm.template(PADDOCK, "--set", peer) if each["kind"] == "NetworkPolicy"]
    assert policy["spec"]["ingress"][1]["from"] == [{"namespaceSelector": {"matchLabels": {"team": "monitoring"}}}]
    assert policy["spec"]["ingress"][1]["ports"] == [{"port": 8080, "protocol": "TCP"}]


def test_two_replicas_that_a_restricted_namespace_takes(helm: Helm) -> None:
    (deployment,) = [each for each in helm.template(PADDOCK) if each["kind"] == "Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert deployment["spec"]["replicas"] == 2
    assert {"name": "LEADER_ELECTION", "value": "true"} in container["env"]
    assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["seccompProfile"]) == (True, {"type": "RuntimeDefault"})
    context = container["securityContext"]
    assert context == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("replicas=3", "replicas"),
        ("replicaCount=two", "replicaCount"),
        ("settings.lower=1", "lower"),
        ("settings.METRICS_BIND_ADDRESS=everywhere", "METRICS_BIND_ADDRESS"),
        ("image.digest=latest", "digest"),
        ("image.pullPolicy=Sometimes", "pullPolicy"),
        ("serviceMonitor.interval=often", "interval"),
        ("networkPolicy.enabled=maybe", "enabled"),
        ("metrics.secure=maybe", "secure"),
        ("metrics.readers[0].kind=Pod", "kind"),
        ("serviceMonitor.tokenSecret=a", "tokenSecret"),
    ],
)
def test_the_schema_refuses(helm: Helm, given: str, words: str) -> None:
    ran = helm.run("template", "x", str(PADDOCK), "--kube-version", "1.34", "--set", given)
    assert ran.returncode != 0
    assert words in ran.stderr


def test_a_digest_takes_precedence_over_the_tag(helm: Helm) -> None:
    digest = f"sha256:{'0' * 64}"
    (deployment,) = [
        each for each in helm.template(PADDOCK, "--set", f"image.tag=v9,image.digest={digest}") if each["kind"] == "Deployment"
    ]
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == f"localhost/paddock-operator@{digest}"


def monitored(helm: Helm, *given: str) -> Any:
    objects = helm.template(PADDOCK, "--set", ",".join(["serviceMonitor.enabled=true", *given]))
    (monitor,) = [each for each in objects if each["kind"] == "ServiceMonitor"]
    return objects, monitor["spec"]["endpoints"][0]


def test_a_monitor_of_metrics_that_are_plain(helm: Helm) -> None:
    objects, endpoint = monitored(helm, "metrics.secure=false")
    assert endpoint == {"port": "metrics", "interval": "30s"}
    rules = next(each["rules"] for each in objects if each["kind"] == "ClusterRole")
    assert not {group for rule in rules for group in rule["apiGroups"] if group.startswith("auth")}
    assert not [each for each in objects if each["metadata"]["name"].endswith("-metrics-reader")]


def test_a_monitor_of_secure_metrics(helm: Helm) -> None:
    _, endpoint = monitored(helm)
    own = "/var/run/secrets/kubernetes.io/serviceaccount/token"
    assert (endpoint["scheme"], endpoint["bearerTokenFile"], endpoint["tlsConfig"]) == ("https", own, {"insecureSkipVerify": True})
    reader = "metrics.readers[0].kind=ServiceAccount,metrics.readers[0].name=prometheus,metrics.readers[0].namespace=monitoring"
    objects, endpoint = monitored(helm, "metrics.certificateSecret=metrics-tls", "serviceMonitor.tokenSecret.name=scraping", reader)
    (service,) = [each["metadata"] for each in objects if each["kind"] == "Service" and each["metadata"]["name"].endswith("-metrics")]
    trust = {"secret": {"name": "metrics-tls", "key": "ca.crt"}}
    assert endpoint["tlsConfig"] == {"serverName": f"{service['name']}.{service['namespace']}.svc", "ca": trust}
    assert endpoint["authorization"] == {"type": "Bearer", "credentials": {"name": "scraping", "key": "token"}}
    assert "bearerTokenFile" not in endpoint
    (deployment,) = [each for each in objects if each["kind"] == "Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (mount,) = container["volumeMounts"]
    assert {"--metrics-secure", f"--metrics-cert-path={mount['mountPath']}"} <= set(container["args"])
    assert pod["volumes"] == [{"name": mount["name"], "secret": {"secretName": "metrics-tls"}}]
    role, binding = (each for each in objects if each["metadata"]["name"].endswith("-metrics-reader"))
    assert role["rules"] == [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "prometheus", "namespace": "monitoring"}]


def test_a_monitor_of_nothing_is_refused(helm: Helm) -> None:
    given = ["--set", "serviceMonitor.enabled=true", "--set-string", "settings.METRICS_BIND_ADDRESS=0"]
    ran = helm.run("template", "x", str(PADDOCK), "--kube-version", "1.34", *given)
    assert ran.returncode != 0
    assert "there are no metrics to scrape" in ran.stderr


def test_the_rights_of_each_dialect_alone(helm: Helm) -> None:
    groups = {}
    for dialect in ("vitistack", "stakater", "virtrigaud"):
        objects = helm.template(PADDOCK, "--set", f"dialects={{{dialect}}}")
        rules = next(each["rules"] for each in objects if each["kind"] == "ClusterRole")
        assert not any("*" in rule.get(part, ()) for rule in rules for part in ("apiGroups", "resources", "verbs"))
        groups[dialect] = {group for rule in rules for group in rule["apiGroups"]}
    assert "infrastructure.stakater.com" in groups["stakater"] - groups["vitistack"]
    assert "vitistack.io" in groups["vitistack"] - groups["stakater"]
    assert "kubevirt.io" not in groups["virtrigaud"]


def test_install_upgrade_and_removal(helm: Helm, cluster: Cluster) -> None:
    """The chart of the document is installed as it was before there were switches, upgraded with all of them, and removed."""
    namespace = f"helm-{'3' if 'helm-3' in str(helm.program) else '4'}"
    reach = ["--kubeconfig", str(cluster.access.kubeconfig), "-n", namespace]
    quiet = ["--set", "definitions=false,serviceMonitor.enabled=false"]
    cluster.kubectl.ok("create", "namespace", namespace)
    steps = (
        ("install", "documented", str(CHART), *quiet),
        (
            "upgrade",
            "documented",
            str(CHART),
            *quiet,
            "--set",
            "replicaCount=2,podDisruptionBudget.enabled=true,networkPolicy.enabled=true",
        ),
        ("uninstall", "documented"),
        ("install", "paddock", str(PADDOCK), *quiet),
        ("upgrade", "paddock", str(PADDOCK), *quiet, "--set", "dashboards.enabled=true"),
        ("uninstall", "paddock"),
    )
    kinds = "deployments,poddisruptionbudgets,networkpolicies,configmaps,serviceaccounts"
    seen = []
    for words in steps:
        ran = helm.run(*words, *reach)
        assert ran.returncode == 0, ran.stderr
        listed = cluster.kubectl.ok("get", kinds, "-n", namespace, "-o", "name").split()
        seen.append({each.split("/")[0].split(".")[0] for each in listed if not each.endswith("/default")} - {"configmap"})
    assert seen == [
        {"deployment", "serviceaccount"},
        {"deployment", "serviceaccount", "poddisruptionbudget", "networkpolicy"},
        set(),
        {"deployment", "serviceaccount", "poddisruptionbudget", "networkpolicy"},
        {"deployment", "serviceaccount", "poddisruptionbudget", "networkpolicy"},
        set(),
    ]


def test_the_kustomize_base_is_what_the_chart_gives(helm: Helm, cluster: Cluster, pytestconfig: pytest.Config) -> None:
    """`--golden-update` writes the base anew."""
    ran = helm.run("template", "paddock", str(PADDOCK), "-n", "paddock-system", "--kube-version", "1.34", "--skip-tests")
    assert ran.returncode == 0, ran.stderr
    rendered = [each for each in yaml.safe_load_all(ran.stdout.replace("managed-by: Helm", "managed-by: kustomize")) if each]
    base = CHARTS.parent / "kustomize"
    if pytestconfig.getoption("--golden-update"):
        workload = [each for each in rendered if each["kind"] != "CustomResourceDefinition"]
        (base / "operator.yaml").write_text(yaml.safe_dump_all(workload, sort_keys=False))
    built = yaml.safe_load_all(cluster.kubectl.ok("kustomize", str(base)))

    def known(objects: Any) -> dict[tuple[str, str], Any]:
        found = {(each["kind"], each["metadata"]["name"]): each for each in objects if each["kind"] != "Namespace"}
        for each in found.values():
            # What keeps the definitions when a release goes.
            each["metadata"].get("annotations", {}).pop("helm.sh/resource-policy", None)
            each["metadata"] = {name: value for name, value in each["metadata"].items() if value}
        return found

    assert known(built) == known(rendered)


@pytest.mark.parametrize("chart", [CHART, PADDOCK], ids=lambda chart: str(chart.name))
def test_a_real_server_takes_it(helm: Helm, chart: Path, cluster: Cluster, binaries: Binaries) -> None:
    # The kinds of the Prometheus operator are not served here.
    switches = [word for each in SWITCHES if each != "serviceMonitor" for word in ("--set", f"{each}.enabled=true")]
    objects = helm.template(chart, "--set", "dialects={vitistack,stakater}", *switches)
    said = cluster.kubectl.ok("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=yaml.safe_dump_all(objects))
    assert len(said.splitlines()) == len(objects)
