"""The library `kubernetes`: its typed client, custom objects, the dynamic client, watches that go on after a restart."""

import base64

import urllib3
from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException
from scenario import API_VERSION, GROUP, NAMESPACE, VERSION, crate, say
from scenario import config as config_map

config.load_kube_config()
core = client.CoreV1Api()
custom = client.CustomObjectsApi()
rbac = client.RbacAuthorizationV1Api()


def typed() -> None:
    for number in range(5):
        core.create_namespaced_config_map(
            NAMESPACE, client.V1ConfigMap(metadata=client.V1ObjectMeta(name=f"c{number}", labels={"by": "typed"}))
        )
    page = core.list_namespaced_config_map(NAMESPACE, label_selector="by=typed", limit=2)
    names = [each.metadata.name for each in page.items]
    while page.metadata._continue:
        page = core.list_namespaced_config_map(NAMESPACE, label_selector="by=typed", limit=2, _continue=page.metadata._continue)
        names += [each.metadata.name for each in page.items]
    assert names == [f"c{number}" for number in range(5)], names
    found = core.read_namespaced_config_map("c0", NAMESPACE)
    found.data = {"a": "1"}
    core.replace_namespaced_config_map("c0", NAMESPACE, found)
    refused = 0
    try:
        core.replace_namespaced_config_map("c0", NAMESPACE, found)
    except ApiException as error:
        refused = error.status
    assert refused == 409, refused
    core.patch_namespaced_config_map("c0", NAMESPACE, {"data": {"b": "2"}})
    assert core.read_namespaced_config_map("c0", NAMESPACE).data == {"a": "1", "b": "2"}
    core.create_namespaced_secret(NAMESPACE, client.V1Secret(metadata=client.V1ObjectMeta(name="s"), string_data={"k": "v"}))
    assert base64.b64decode(core.read_namespaced_secret("s", NAMESPACE).data["k"]) == b"v"
    rule = client.V1PolicyRule(api_groups=[""], resources=["configmaps"], verbs=["get"])
    rbac.create_namespaced_role(NAMESPACE, client.V1Role(metadata=client.V1ObjectMeta(name="r"), rules=[rule]))
    core.delete_namespaced_config_map("c0", NAMESPACE)
    core.delete_collection_namespaced_config_map(NAMESPACE, label_selector="by=typed")
    assert core.list_namespaced_config_map(NAMESPACE, label_selector="by=typed").items == []
    assert core.list_node().items[0].status.conditions
    assert client.VersionApi().get_code().major == "1"


def customs() -> None:
    place = (GROUP, VERSION, NAMESPACE, "crates")
    custom.create_namespaced_custom_object(*place, crate("one"))
    custom.patch_namespaced_custom_object(*place, "one", {"spec": {"lid": "x"}})
    custom.patch_namespaced_custom_object_status(*place, "one", {"status": {"replicas": 4}})
    found = custom.get_namespaced_custom_object(*place, "one")
    assert (found["spec"]["lid"], found["status"]["replicas"]) == ("x", 4)
    assert custom.get_namespaced_custom_object_scale(*place, "one")["status"]["replicas"] == 4
    custom.delete_namespaced_custom_object(*place, "one")


def dynamically() -> None:
    api = dynamic.DynamicClient(client.ApiClient())
    crates = api.resources.get(api_version=API_VERSION, kind="Crate")
    made = crates.create(body=crate("two"), namespace=NAMESPACE)
    assert made.spec.replicas == 1
    applied = crates.server_side_apply(
        namespace=NAMESPACE, name="two", body=crate("two", lid="y"), field_manager="script", force_conflicts=True
    )
    assert (applied.spec.lid, applied.metadata.managedFields[0].operation) == ("y", "Apply")
    crates.patch(body={"spec": {"lid": "z"}}, namespace=NAMESPACE, name="two", content_type="application/merge-patch+json")
    assert crates.get(namespace=NAMESPACE, name="two").spec.lid == "z"
    events = [event["type"] for event in crates.watch(namespace=NAMESPACE, timeout=1)]
    assert events == ["ADDED"], events
    crates.delete(name="two", namespace=NAMESPACE)
    maps = api.resources.get(api_version="v1", kind="ConfigMap")
    maps.server_side_apply(namespace=NAMESPACE, name="m", body=config_map("m", a="1"), field_manager="script")
    assert [each.metadata.name for each in maps.get(namespace=NAMESPACE, field_selector="metadata.name=m").items] == ["m"]


def watching() -> None:
    revision = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version
    say("watching")
    while True:
        try:
            for event in watch.Watch().stream(core.list_namespaced_config_map, NAMESPACE, resource_version=revision, timeout_seconds=30):
                revision = event["object"].metadata.resource_version
                say(f"seen {event['type']} {event['object'].metadata.name}")
                if event["object"].metadata.name == "last":
                    return
        except (urllib3.exceptions.HTTPError, ApiException):
            continue


typed()
customs()
dynamically()
watching()
