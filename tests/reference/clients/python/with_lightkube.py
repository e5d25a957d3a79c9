"""The library `lightkube`: models, generic resources, server-side apply, a watch that tries again."""

import time

import httpx2
from lightkube import Client, types
from lightkube.core.exceptions import ApiError
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, Node, Secret
from scenario import GROUP, NAMESPACE, VERSION, crate, say

client = Client(namespace=NAMESPACE, field_manager="script")
client.create(ConfigMap(metadata=ObjectMeta(name="m"), data={"a": "1"}))
found = client.get(ConfigMap, "m")
found.data["b"] = "2"
client.replace(found)
client.patch(ConfigMap, "m", {"data": {"a": None}}, patch_type=types.PatchType.MERGE)
assert client.get(ConfigMap, "m").data == {"b": "2"}
client.apply(ConfigMap(metadata=ObjectMeta(name="n"), data={"a": "1"}))
refused = ""
try:
    client.apply(ConfigMap(metadata=ObjectMeta(name="n"), data={"a": "2"}), field_manager="other")
except ApiError as error:
    refused = error.status.reason
assert refused == "Conflict", refused
client.apply(ConfigMap(metadata=ObjectMeta(name="n"), data={"a": "2"}), field_manager="other", force=True)
client.create(Secret(metadata=ObjectMeta(name="s"), stringData={"k": "v"}))
assert [each.metadata.name for each in client.list(ConfigMap, fields={"metadata.name": "n"})] == ["n"]
assert next(iter(client.list(Node))).status.conditions

Crate = create_namespaced_resource(GROUP, VERSION, "Crate", "crates")
client.create(Crate(**{key: value for key, value in crate("one").items() if key in ("metadata", "spec")}))
client.apply(Crate(apiVersion=f"{GROUP}/{VERSION}", kind="Crate", metadata={"name": "one"}, spec={"color": "red", "lid": "x"}), force=True)
client.patch(Crate.Status, "one", {"status": {"replicas": 3}}, patch_type=types.PatchType.MERGE)
one = client.get(Crate, "one")
assert (one["spec"]["lid"], one["status"]["replicas"]) == ("x", 3)
client.delete(Crate, "one")
client.deletecollection(Secret)
assert list(client.list(Secret)) == []

say("watching")
done, revision = False, None
while not done:
    try:
        for event, each in client.watch(ConfigMap, resource_version=revision):
            revision = each.metadata.resourceVersion
            say(f"seen {event} {each.metadata.name}")
            if each.metadata.name == "last":
                done = True
                break
    except (httpx2.HTTPError, ApiError):
        time.sleep(0.1)
