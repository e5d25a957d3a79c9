"""create, get, update, list and delete of objects, as docs/spec/kube-api.md sections 2 and 5.1 say."""

import asyncio
from typing import Any

import pytest

from tests.coroutines import played
from tests.kit.servers.apiharness import Harness, Reply

MAPS = "/api/v1/namespaces/default/configmaps"
POOLS = "/apis/pool.kubevirt.io/v1beta1/namespaces/default/virtualmachinepools"
NCS = "/apis/vitistack.io/v1alpha1/namespaces/default/networkconfigurations"


def config_map(name: str = "a", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **fields}


def network(name: str = "n", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "vitistack.io/v1alpha1", "kind": "NetworkConfiguration", "metadata": {"name": name}, "spec": spec}


def names(reply: Reply) -> list[str]:
    return [item["metadata"]["name"] for item in reply.data["items"]]


@pytest.mark.spec("kube-api", 17, 26)
@played
async def test_create_sets_what_the_server_sets(api: Harness, /) -> None:
    sent = config_map(data={"x": "1"})
    sent["metadata"] |= {"uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 7, "selfLink": "/x"}
    made = await api.post(MAPS, sent)
    assert made.status == 201
    meta = made.data["metadata"]
    assert meta["uid"] != "mine"
    assert meta["creationTimestamp"] == api.clock.now()
    assert meta["namespace"] == "default"
    assert meta["resourceVersion"].isdecimal()
    assert "generation" not in meta
    assert "selfLink" not in meta
    (entry,) = meta["managedFields"]
    assert (entry["operation"], entry["fieldsV1"]) == ("Update", {"f:data": {".": {}, "f:x": {}}})
    assert (await api.get(f"{MAPS}/a")).data == made.data
    custom = network()
    custom["metadata"]["generation"] = 7
    assert (await api.post(NCS, custom)).data["metadata"]["generation"] == 1


@pytest.mark.spec("kube-api", 20)
@pytest.mark.spec("kube-api", 27, "names", "labels")
@pytest.mark.parametrize(
    ("body", "code", "reason", "words"),
    [
        (config_map() | {"metadata": {"name": "a", "namespace": "other"}}, 400, "BadRequest", "does not match the namespace sent"),
        (config_map() | {"apiVersion": "v2"}, 400, "BadRequest", "does not match the expected API version (v1)"),
        (config_map() | {"kind": "Secret"}, 400, "BadRequest", "does not match the expected kind (ConfigMap)"),
        (config_map() | {"metadata": {"name": "a", "resourceVersion": "1"}}, 400, "BadRequest", "resourceVersion should not be set"),
        (config_map() | {"metadata": {}}, 422, "Invalid", "name or generateName is required"),
        (config_map() | {"metadata": {"name": "A_b"}}, 422, "Invalid", "a lowercase RFC 1123 subdomain"),
        (config_map() | {"metadata": {"name": "a", "labels": {"x": 1}}}, 400, "BadRequest", "metadata.labels"),
        (config_map() | {"metadata": {"name": "a", "labels": {"-x": "1"}}}, 422, "Invalid", "metadata.labels"),
        (config_map() | {"metadata": {"name": "a", "labels": {"x": "no value"}}}, 422, "Invalid", "metadata.labels"),
        (config_map() | {"data": 5}, 400, "BadRequest", "data"),
        ([], 400, "BadRequest", "must be an object"),
    ],
)
@played
async def test_create_refuses(api: Harness, /, body: Any, code: int, reason: str, words: str) -> None:
    refused = await api.post(MAPS, body)
    assert (refused.status, refused.reason) == (code, reason)
    assert words in refused.data["message"]
    assert refused.data["code"] == code


@pytest.mark.spec("kube-api", 18)
@played
async def test_a_name_is_taken_once(api: Harness, /) -> None:
    await api.post(MAPS, config_map())
    again = await api.post(MAPS, config_map())
    assert (again.status, again.reason) == (409, "AlreadyExists")
    assert again.data["message"] == 'configmaps "a" already exists'
    assert again.data["details"] == {"name": "a", "kind": "configmaps"}
    await api.post(NCS, network())
    again = await api.post(NCS, network())
    assert again.data["message"] == 'networkconfigurations.vitistack.io "n" already exists'
    assert again.data["details"] == {"name": "n", "group": "vitistack.io", "kind": "networkconfigurations"}


@pytest.mark.spec("kube-api", 20)
@played
async def test_namespaces_must_be_there(api: Harness, /) -> None:
    refused = await api.post("/api/v1/namespaces/nowhere/configmaps", config_map())
    assert (refused.status, refused.data["message"]) == (404, 'namespaces "nowhere" not found')


@pytest.mark.spec("kube-api", 16)
@played
async def test_absent_objects(api: Harness, /) -> None:
    gone = await api.get(f"{NCS}/x")
    assert (gone.status, gone.reason) == (404, "NotFound")
    assert gone.data["message"] == 'networkconfigurations.vitistack.io "x" not found'
    assert gone.data["details"] == {"name": "x", "group": "vitistack.io", "kind": "networkconfigurations"}
    assert (await api.get("/apis/none.example.com/v1/things")).status == 404
    assert (await api.get("/nowhere")).raw == b"404 page not found\n"


@pytest.mark.spec("kube-api", 21)
@played
async def test_of_two_updates_of_one_revision_one_wins(api: Harness, /) -> None:
    first = (await api.post(NCS, network(vlan=1))).data
    updates = [api.put(f"{NCS}/n", first | {"spec": {"vlan": vlan}}) for vlan in (2, 3)]
    answers = await asyncio.gather(*updates)
    assert sorted(each.status for each in answers) == [200, 409]
    (won,) = [each.data for each in answers if each.status == 200]
    assert (await api.get(f"{NCS}/n")).data == won


@pytest.mark.spec("kube-api", 21, 22)
@played
async def test_updates_need_the_newest_revision(api: Harness, /) -> None:
    first = (await api.post(NCS, network(vlan=1))).data
    second = await api.put(f"{NCS}/n", first | {"spec": {"vlan": 2}})
    assert (second.status, second.data["spec"]["vlan"]) == (200, 2)
    assert int(second.data["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])
    stale = await api.put(f"{NCS}/n", first | {"spec": {"vlan": 3}})
    assert (stale.status, stale.reason) == (409, "Conflict")
    assert stale.data["message"] == (
        'Operation cannot be fulfilled on networkconfigurations.vitistack.io "n": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    without = await api.put(f"{NCS}/n", network(vlan=3))
    assert without.status == 422
    assert without.causes["metadata.resourceVersion"] == "Invalid value: 0: must be specified for an update"


@pytest.mark.spec("kube-api", 22)
@played
async def test_built_in_kinds_may_be_overwritten(api: Harness, /) -> None:
    await api.post(MAPS, config_map(data={"x": "1"}))
    assert (await api.put(f"{MAPS}/a", config_map(data={"y": "2"}))).data["data"] == {"y": "2"}
    assert (await api.put(f"{MAPS}/b", config_map("b"))).status == 404


@pytest.mark.spec("kube-api", 23, 26)
@played
async def test_what_a_client_cannot_change(api: Harness, /) -> None:
    made = (await api.post(MAPS, config_map())).data
    sent = config_map(data={"x": "1"})
    sent["metadata"] |= {"creationTimestamp": "2001-01-01T00:00:00Z", "deletionTimestamp": "2001-01-01T00:00:00Z", "generation": 9}
    changed = (await api.put(f"{MAPS}/a", sent)).data["metadata"]
    assert changed["creationTimestamp"] == made["metadata"]["creationTimestamp"]
    assert "deletionTimestamp" not in changed
    assert "generation" not in changed
    sent["metadata"] = {"name": "a", "uid": "other"}
    assert (await api.put(f"{MAPS}/a", sent)).reason == "Conflict"
    sent["metadata"] = {"name": "b"}
    assert "does not match the name on the URL" in (await api.put(f"{MAPS}/a", sent)).data["message"]


@pytest.mark.spec("kube-api", 24)
@played
async def test_a_write_that_changes_nothing_is_none(api: Harness, /) -> None:
    made = (await api.post(NCS, network(vlan=1))).data
    api.clock.time += 100
    assert (await api.put(f"{NCS}/n", made)).data == made
    assert (await api.merge(f"{NCS}/n", {"spec": {"vlan": 1}})).data == made
    assert api.store.revision == int(made["metadata"]["resourceVersion"])
    applied = "application/apply-patch+yaml"
    mine = (await api.call("PATCH", f"{NCS}/n?fieldManager=one", network(vlan=1), content_type=applied)).data
    revision = api.store.revision
    async with api.watch(f"{NCS}?watch=1&resourceVersion={revision}") as events:
        api.clock.time += 100
        assert (await api.call("PATCH", f"{NCS}/n?fieldManager=one", network(vlan=1), content_type=applied)).data == mine
        # A client that sends other times of its own has changed nothing either.
        aged = [{**each, "time": "2020-01-01T00:00:00Z"} for each in mine["metadata"]["managedFields"]]
        assert (await api.put(f"{NCS}/n", mine | {"metadata": mine["metadata"] | {"managedFields": aged}})).data == mine
        assert api.store.revision == revision
        assert await events.quiet()


@pytest.mark.spec("kube-api", 25)
@played
async def test_generation_counts_changes_of_the_spec(api: Harness, /) -> None:
    assert (await api.post(NCS, network(vlan=1))).data["metadata"]["generation"] == 1
    assert (await api.merge(f"{NCS}/n", {"metadata": {"labels": {"a": "b"}}})).data["metadata"]["generation"] == 1
    assert (await api.merge(f"{NCS}/n", {"spec": {"vlan": 2}})).data["metadata"]["generation"] == 2
    assert (await api.merge(f"{NCS}/n/status", {"status": {"ready": True}})).data["metadata"]["generation"] == 2


@pytest.mark.spec("kube-api", 35, 36)
@played
async def test_status_and_the_rest_are_written_apart(api: Harness, /) -> None:
    made = await api.post(NCS, network(vlan=1) | {"status": {"ready": True}})
    assert "status" not in made.data
    whole = made.data | {"spec": {"vlan": 2}, "status": {"ready": False}}
    assert "status" not in (await api.put(f"{NCS}/n", whole)).data
    current = (await api.get(f"{NCS}/n")).data
    sent = current | {"spec": {"vlan": 3}, "status": {"ready": True}}
    sent["metadata"] = current["metadata"] | {"labels": {"a": "b"}}
    changed = (await api.put(f"{NCS}/n/status", sent)).data
    assert changed["status"] == {"ready": True}
    assert changed["spec"]["vlan"] == 2
    assert "labels" not in changed["metadata"]
    assert (await api.put(f"{NCS}/gone/status", network("gone"))).status == 404
    assert (await api.get(f"{NCS}/n/status")).data == changed


@pytest.mark.spec("kube-api", 34)
@played
async def test_dry_run_changes_nothing(api: Harness, /) -> None:
    before = api.store.revision
    made = await api.post(f"{MAPS}?dryRun=All", config_map())
    assert made.status == 201
    assert made.data["metadata"]["uid"]
    assert "resourceVersion" not in made.data["metadata"]
    assert (await api.get(f"{MAPS}/a")).status == 404
    refused = await api.post(f"{MAPS}?dryRun=Some", config_map())
    assert refused.status == 422
    await api.post(MAPS, config_map())
    assert (await api.delete(f"{MAPS}/a?dryRun=All")).status == 200
    assert (await api.merge(f"{MAPS}/a?dryRun=All", {"data": {"x": "1"}})).data["data"] == {"x": "1"}
    assert "data" not in (await api.get(f"{MAPS}/a")).data
    assert api.store.revision == before + 1


@pytest.mark.spec("kube-api", 32, 34)
@played
async def test_unknown_and_repeated_fields(api: Harness, /) -> None:
    twice = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1","x":"2"},"foo":1}'
    strict = await api.post(f"{MAPS}?fieldValidation=Strict", twice)
    assert (strict.status, strict.reason) == (400, "BadRequest")
    assert strict.data["message"] == 'strict decoding error: duplicate field "data.x", unknown field "foo"'
    # As the text has them.
    turned = b'{"apiVersion":"v1","kind":"ConfigMap","foo":1,"metadata":{"name":"a"},"data":{"x":"1","x":"2"}}'
    strict = await api.post(f"{MAPS}?fieldValidation=Strict", turned)
    assert strict.data["message"] == 'strict decoding error: unknown field "foo", duplicate field "data.x"'
    warned = await api.post(f"{MAPS}?fieldValidation=Warn", twice)
    assert warned.status == 201
    assert warned.warnings == ['299 - "duplicate field \\"data.x\\""', '299 - "unknown field \\"foo\\""']
    assert "foo" not in warned.data
    ignored = await api.put(f"{MAPS}/a?fieldValidation=Ignore", twice)
    assert ignored.warnings == []


@pytest.mark.spec("kube-api", 15)
@played
async def test_yaml_bodies_and_answers(api: Harness, /) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  x: 'on'\n"
    made = await api.call("POST", MAPS, text, content_type="application/yaml", accept="application/yaml")
    assert made.status == 201
    assert made.headers["content-type"] == "application/yaml"
    assert b"x: 'on'" in made.raw
    assert (await api.call("POST", MAPS, b"x", content_type="text/html")).status == 415
    assert (await api.get(f"{MAPS}/a", accept="image/png")).status == 406


@pytest.mark.parametrize("body", [b"{", b"\xff\xfe{", b"[" * 5000, b'{"a":' * 300 + b"1" + b"}" * 300, b"null", b'"x"', b"1" * 5000, b""])
@played
async def test_bodies_that_are_none(api: Harness, /, body: bytes) -> None:
    for content_type in ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf"):
        refused = await api.call("POST", MAPS, body or b" ", content_type=content_type)
        assert refused.status in (400, 415), refused.raw


@pytest.mark.spec("kube-api", 49)
@played
async def test_lists_are_in_order_and_never_null(api: Harness, /) -> None:
    empty = await api.get(MAPS)
    assert empty.data["items"] == []
    assert empty.data["kind"] == "ConfigMapList"
    assert empty.data["metadata"]["resourceVersion"].isdecimal()
    await api.namespace("another")
    for namespace, name in (("default", "b"), ("default", "a"), ("another", "c")):
        await api.post(f"/api/v1/namespaces/{namespace}/configmaps", config_map(name))
    assert names(await api.get(MAPS)) == ["a", "b"]
    assert names(await api.get("/api/v1/configmaps")) == ["c", "a", "b"]
    assert (await api.get("/api/v1/configmaps")).data["metadata"]["resourceVersion"] == str(api.store.revision)


@pytest.mark.spec("kube-api", 38)
@played
async def test_selectors(api: Harness, /) -> None:
    for name, labels in (("a", {"app": "x"}), ("b", {"app": "y", "tier": "1"}), ("c", {})):
        sent = config_map(name)
        sent["metadata"]["labels"] = labels
        await api.post(MAPS, sent)
    for selector, found in {
        "app=x": ["a"],
        "app%20in%20(x,y)": ["a", "b"],
        "app!=x": ["b", "c"],
        "!app": ["c"],
        "app,tier": ["b"],
        "tier>0": ["b"],
        "app=x,tier=1": [],
    }.items():
        assert names(await api.get(f"{MAPS}?labelSelector={selector}")) == found, selector
    assert names(await api.get(f"{MAPS}?fieldSelector=metadata.name=b")) == ["b"]
    assert names(await api.get(f"{MAPS}?fieldSelector=metadata.name!=b")) == ["a", "c"]
    wrong = await api.get(f"{MAPS}?labelSelector=a%20b")
    assert (wrong.status, wrong.data["message"].startswith("unable to parse requirement")) == (400, True)
    unknown = await api.get(f"{MAPS}?fieldSelector=data.x=1")
    assert (unknown.status, unknown.data["message"]) == (400, "field label not supported: data.x")


@pytest.mark.spec("kube-api", 48, "RV=0, N, Exact N, NotOlderThan N")
@played
async def test_lists_of_a_revision(api: Harness, /) -> None:
    made = (await api.post(MAPS, config_map("a"))).data["metadata"]["resourceVersion"]
    await api.post(MAPS, config_map("b"))
    assert names(await api.get(f"{MAPS}?resourceVersion=0")) == ["a", "b"]
    assert names(await api.get(f"{MAPS}?resourceVersion={made}")) == ["a", "b"]
    assert names(await api.get(f"{MAPS}?resourceVersion={made}&resourceVersionMatch=NotOlderThan")) == ["a", "b"]
    assert names(await api.get(f"{MAPS}?resourceVersion={made}&resourceVersionMatch=Exact")) == ["a"]
    assert names(await api.get(f"{MAPS}?resourceVersion={made}&limit=5")) == ["a"]
    for wrong in (
        "resourceVersionMatch=Exact",
        "resourceVersion=0&resourceVersionMatch=Exact",
        "resourceVersion=1&resourceVersionMatch=X",
    ):
        assert (await api.get(f"{MAPS}?{wrong}")).status == 422, wrong
    assert (await api.get(f"{MAPS}?resourceVersion=x")).status == 400
    await api.store.compact(api.store.revision - 1)
    assert (await api.get(f"{MAPS}?resourceVersion={int(made) - 1}&resourceVersionMatch=Exact")).status == 410


@pytest.mark.spec("kube-api", 92, 95)
@played
async def test_deletion(api: Harness, /) -> None:
    uid = (await api.post(MAPS, config_map())).data["metadata"]["uid"]
    wrong = await api.delete(f"{MAPS}/a", {"preconditions": {"uid": "other"}})
    assert (wrong.status, wrong.reason) == (409, "Conflict")
    assert "does not match the UID in record" in wrong.data["message"]
    assert (await api.delete(f"{MAPS}/a", {"preconditions": {"resourceVersion": "1"}})).status == 409
    done = await api.delete(f"{MAPS}/a", {"preconditions": {"uid": uid}})
    assert done.data["status"] == "Success"
    assert done.data["details"] == {"name": "a", "kind": "configmaps", "uid": uid}
    assert (await api.delete(f"{MAPS}/a")).status == 404
    assert (await api.delete(f"{MAPS}/a", {"propagationPolicy": "Sideways"})).status in (404, 422)


@pytest.mark.spec("kube-api", 25, 93, 94)
@played
async def test_finalizers_hold_a_deletion(api: Harness, /) -> None:
    sent = network(vlan=1)
    sent["metadata"]["finalizers"] = ["example.com/a"]
    await api.post(NCS, sent)
    marked = await api.delete(f"{NCS}/n")
    assert marked.status == 200
    assert marked.data["metadata"]["deletionTimestamp"] == api.clock.now()
    assert marked.data["metadata"]["deletionGracePeriodSeconds"] == 0
    assert marked.data["metadata"]["generation"] == 2
    assert (await api.delete(f"{NCS}/n")).data == marked.data
    again = await api.post(NCS, network())
    assert (again.status, again.data["message"].startswith("object is being deleted: ")) == (409, True)
    more = await api.merge(f"{NCS}/n", {"metadata": {"finalizers": ["example.com/a", "example.com/b"]}})
    assert more.status == 422
    assert 'found new finalizers []string{"example.com/b"}' in more.causes["metadata.finalizers"]
    gone = await api.merge(f"{NCS}/n", {"metadata": {"finalizers": None}})
    assert gone.status == 200
    assert (await api.get(f"{NCS}/n")).status == 404


@played
async def test_propagation_policies_are_finalizers(api: Harness, /) -> None:
    for policy, finalizer in (("Foreground", "foregroundDeletion"), ("Orphan", "orphan")):
        await api.post(MAPS, config_map(policy.lower()))
        marked = await api.delete(f"{MAPS}/{policy.lower()}", {"propagationPolicy": policy})
        assert marked.data["metadata"]["finalizers"] == [finalizer]
    both = await api.delete(f"{MAPS}/orphan", {"propagationPolicy": "Orphan", "orphanDependents": True})
    assert both.status == 422


@pytest.mark.spec("kube-api", 50)
@played
async def test_collections_are_deleted_by_selector(api: Harness, /) -> None:
    for name in "abc":
        sent = config_map(name)
        sent["metadata"]["labels"] = {"keep": "yes" if name == "b" else "no"}
        await api.post(MAPS, sent)
    done = await api.delete(f"{MAPS}?labelSelector=keep=no")
    assert done.status == 200
    assert names(done) == ["a", "c"]
    assert names(await api.get(MAPS)) == ["b"]


@pytest.mark.spec("kube-api", 51)
@played
async def test_verbs_that_are_not_served(api: Harness, /) -> None:
    await api.post(MAPS, config_map())
    for method, target in (("POST", f"{MAPS}/a"), ("PUT", MAPS), ("PATCH", MAPS), ("OPTIONS", MAPS)):
        refused = await api.call(method, target, config_map())
        assert (refused.status, refused.reason) == (405, "MethodNotAllowed"), (method, target)
    assert (await api.call("HEAD", f"{MAPS}/a")).status == 200
    assert (await api.post("/api/v1/configmaps", config_map())).status == 405
    assert (await api.get("/api/v1/configmaps/a")).status == 404
    assert (await api.get(f"{MAPS}/a/status")).status == 404
    assert (await api.get("/apis/vitistack.io/v1alpha1/networkconfigurations/n")).status == 404


@played
async def test_scale(api: Harness, /) -> None:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"runStrategy": "Always", "template": {"spec": {"domain": {"devices": {}, "memory": {"guest": "1Gi"}}}}},
    }
    pool = {"apiVersion": "pool.kubevirt.io/v1beta1", "kind": "VirtualMachinePool", "metadata": {"name": "p"}}
    made = await api.post(
        POOLS, pool | {"spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "virtualMachineTemplate": template}}
    )
    assert made.status == 201, made.raw
    scale = (await api.get(f"{POOLS}/p/scale")).data
    assert (scale["kind"], scale["apiVersion"], scale["spec"], scale["status"]) == (
        "Scale",
        "autoscaling/v1",
        {"replicas": 2},
        {"replicas": 0},
    )
    table = (await api.get(f"{POOLS}/p/scale", accept="application/json;as=Table;g=meta.k8s.io;v=v1")).data
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Desired", "Available", "Age"]
    assert [row["cells"] for row in table["rows"]] == [["p", 2, 0, "0s"]]
    assert table["rows"][0]["object"] == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": scale["metadata"],
    }
    assert (await api.put(f"{POOLS}/p/scale", scale | {"spec": {"replicas": 5}})).data["spec"] == {"replicas": 5}
    assert (await api.merge(f"{POOLS}/p/scale", {"spec": {"replicas": 1}})).data["spec"] == {"replicas": 1}
    stored = (await api.get(f"{POOLS}/p")).data
    assert stored["spec"]["replicas"] == 1
    assert [entry["fieldsV1"] for entry in stored["metadata"]["managedFields"] if entry.get("subresource") == "scale"] == [
        {"f:spec": {"f:replicas": {}}}
    ]
    assert (await api.put(f"{POOLS}/p/scale", scale | {"spec": {"replicas": 3}})).status == 409
    assert (await api.merge(f"{POOLS}/p/scale", {"spec": {"replicas": -1}})).status == 422
