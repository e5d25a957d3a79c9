"""The library `kubernetes` makes, watches, changes and deletes machines: custom objects, and the dynamic client."""

from kubernetes import client, config, dynamic, watch
from scenario import NAMESPACE, say

config.load_kube_config()
GROUP, VERSION, PLURAL = "kubevirt.io", "v1", "virtualmachines"
PLACE = (GROUP, VERSION, NAMESPACE, PLURAL)


def machine(name: str) -> dict[str, object]:
    domain = {"memory": {"guest": "128Mi"}, "devices": {}}
    spec = {"runStrategy": "Halted", "template": {"spec": {"domain": domain}}}
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": "VirtualMachine", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


def customs() -> None:
    custom = client.CustomObjectsApi()
    revision = custom.list_namespaced_custom_object(*PLACE)["metadata"]["resourceVersion"]
    custom.create_namespaced_custom_object(*PLACE, machine("custom"))
    custom.patch_namespaced_custom_object(*PLACE, "custom", {"spec": {"runStrategy": "Manual"}})
    custom.patch_namespaced_custom_object_status(*PLACE, "custom", {"status": {"printableStatus": "Stopped"}})
    custom.delete_namespaced_custom_object(*PLACE, "custom")
    stream = watch.Watch().stream(custom.list_namespaced_custom_object, *PLACE, resource_version=revision, timeout_seconds=30)
    for event in stream:
        found = event["object"]
        status = found.get("status", {}).get("printableStatus", "")
        say(f"custom {event['type']} {found['metadata']['name']} {found['spec']['runStrategy']} {status}".rstrip())
        if event["type"] == "DELETED":
            return


def dynamically() -> None:
    machines = dynamic.DynamicClient(client.ApiClient()).resources.get(api_version=f"{GROUP}/{VERSION}", kind="VirtualMachine")
    assert machines.short_names == ["vm", "vms"], machines.short_names
    machines.create(body=machine("dynamic"), namespace=NAMESPACE)
    assert machines.get(namespace=NAMESPACE, name="dynamic").spec.template.spec.domain.memory.guest == "128Mi"
    for event in machines.watch(namespace=NAMESPACE, timeout=30):
        say(f"dynamic {event['type']} {event['object'].metadata.name}")
        if event["type"] == "DELETED":
            return
        machines.delete(name="dynamic", namespace=NAMESPACE)


customs()
dynamically()
say("end")
