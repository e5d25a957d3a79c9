"""The library `kr8s`: its objects and those of a kind it learns by discovery."""

import time

import httpx
import kr8s
from kr8s.objects import ConfigMap, Namespace, Secret, new_class
from scenario import API_VERSION, NAMESPACE, config, crate, say

api = kr8s.api(namespace=NAMESPACE)
assert api.version()["major"] == "1"
assert Namespace.get(NAMESPACE).metadata.name == NAMESPACE
mine = ConfigMap(config("m", a="1"))
mine.create()
mine.patch({"data": {"b": "2"}})
mine.label({"by": "kr8s"})
mine.refresh()
assert (dict(mine.data), mine.labels["by"]) == ({"a": "1", "b": "2"}, "kr8s")
assert [each.name for each in kr8s.get("configmaps", namespace=NAMESPACE, label_selector="by=kr8s")] == ["m"]
Secret({"metadata": {"name": "s", "namespace": NAMESPACE}, "stringData": {"k": "v"}}).create()

Crate = new_class(kind="Crate", version=API_VERSION, namespaced=True, scalable=True, scalable_spec="replicas")
one = Crate(crate("one"))
one.create()
one.patch({"spec": {"lid": "x"}})
one.patch({"status": {"replicas": 3}}, subresource="status")
one.refresh()
assert (one.spec.lid, one.status.replicas) == ("x", 3)
assert [each.name for each in kr8s.get("crates.reference.paddock.example", namespace=NAMESPACE)] == ["one"]
one.delete()
while one.exists():
    time.sleep(0.05)

say("watching")
done = False
while not done:
    try:
        for event, found in api.watch("configmaps", namespace=NAMESPACE):
            say(f"seen {event} {found.name}")
            if found.name == "last":
                done = True
                break
    except (httpx.HTTPError, kr8s.ConnectionClosedError, kr8s.APITimeoutError, kr8s.ServerError, OSError):
        time.sleep(0.1)
