"""Definitions and the objects of the kinds they make, through the whole road of requests."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddock.server.store.memory import MemoryStore
from tests.coroutines import played, run_by
from tests.kit.servers.apiharness import Harness, Reply

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
STRING = {"type": "string"}
# Answers of a kube-apiserver 1.36, recorded.
ANSWERS = json.loads((Path(__file__).parent / "definitions.json").read_text())
# Where only words differ.
OTHER_WORDS = frozenset(
    ("node:pattern_bad", "node:pattern_bad2", "node:cel_syntax", "nostorage", "nogroup", "plural", "vername", "twostorage", "dupver")
)
# Nine selectable fields are one too many, besides that none of these leads anywhere.
MORE_CAUSES = frozenset(("sel_9",))


def version(name: str = "v1", **members: Any) -> dict[str, Any]:
    """A version with a spec of these members."""
    extra = {key: members.pop(key) for key in tuple(members) if key in _OF_VERSION}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": members}, "status": _OPEN}}
    return {"name": name, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **extra}


_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_OF_VERSION = (
    *("served", "storage", "subresources", "additionalPrinterColumns", "selectableFields", "deprecated", "deprecationWarning", "schema"),
)


def definition(*versions: dict[str, Any], plural: str = "widgets", **spec: Any) -> dict[str, Any]:
    """A definition in the group example.com."""
    names = {"plural": plural, "kind": plural[:-1].capitalize(), **spec.pop("names", {})}
    body = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": list(versions) or [version(color=STRING)], **spec}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": body,
    }


def widget(name: str = "a", served: str = "v1", **members: Any) -> dict[str, Any]:
    """A widget."""
    return {"apiVersion": f"example.com/{served}", "kind": "Widget", "metadata": {"name": name}, **members}


async def define(api: Harness, *versions: dict[str, Any], **spec: Any) -> Reply:
    """Make a definition that is good."""
    made = await api.post(CRDS, definition(*versions, **spec))
    assert made.status == 201, made.data
    return made


async def redefine(api: Harness, **spec: Any) -> Reply:
    """Change members of the spec of the definition of widgets."""
    return await api.merge(f"{CRDS}/widgets.example.com", {"spec": spec})


def conditions(crd: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Type -> status and reason."""
    return {each["type"]: (each["status"], each["reason"]) for each in crd["status"]["conditions"]}


async def settle(api: Harness, path: str) -> None:
    """Wait until something is gone."""
    for _ in range(500):
        if (await api.get(path)).status == 404:
            return
        await asyncio.sleep(0)
    raise AssertionError(f"{path} is still there")


@pytest.mark.spec("kube-api", 103, "structural-schema violation")
@pytest.mark.parametrize("case", ANSWERS, ids=lambda case: str(case["case"]))
@played
async def test_judged_as_by_a_kube_apiserver(api: Harness, /, case: dict[str, Any]) -> None:
    name = case["case"]
    said = await api.post(f"{CRDS}?dryRun=All", case["crd"])
    assert said.status == case["code"], said.data
    assert said.warnings == case["warnings"]
    if said.status != 422:
        return
    causes = [(each["field"], each["reason"], each["message"]) for each in said.data["details"]["causes"]]
    wanted = [tuple(each) for each in case["causes"]]
    if name in OTHER_WORDS:
        assert {each[0] for each in causes} <= {each[0] for each in wanted}
    elif name in MORE_CAUSES:
        assert set(wanted) < set(causes)
    else:
        assert sorted(causes) == sorted(wanted)


@pytest.mark.parametrize("file", sorted((Path(__file__).parents[4] / "api" / "crds").rglob("*.yaml")), ids=lambda file: str(file.name))
@played
async def test_our_own_definitions_are_accepted(api: Harness, /, file: Path) -> None:
    """Under other groups, because the kinds themselves are served already."""
    for crd in yaml.load_all(file.read_text(), Loader=yaml.CSafeLoader):
        crd["spec"]["group"] = crd["spec"]["group"] + ".example.com"
        crd["metadata"]["name"] = f"{crd['spec']['names']['plural']}.{crd['spec']['group']}"
        said = await api.post(f"{CRDS}?dryRun=All", crd)
        assert said.status == 201, said.data["message"]


@pytest.mark.spec("kube-api", 102)
@pytest.mark.spec("kube-api", 5)
@played
async def test_everything_is_there_when_the_create_returns(api: Harness, /) -> None:
    aggregated = {"accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
    before = await api.get("/apis", **aggregated)
    index = (await api.get("/openapi/v3")).data["paths"]
    made = await define(api, names={"shortNames": ["wd"], "categories": ["all"]})
    assert conditions(made.data) == {
        "NamesAccepted": ("True", "NoConflicts"),
        "Established": ("True", "InitialNamesAccepted"),
    }
    assert made.data["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert made.data["metadata"]["generation"] == 1
    names: dict[str, Any] = {"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"}
    names |= {"shortNames": ["wd"], "categories": ["all"]}
    assert made.data["spec"]["names"] == made.data["status"]["acceptedNames"] == names
    assert made.data["spec"]["conversion"] == {"strategy": "None"}
    assert made.data["status"]["storedVersions"] == ["v1"]
    after = await api.get("/apis", **aggregated)
    assert after.headers["etag"] != before.headers["etag"]
    (group,) = [each for each in after.data["items"] if each["metadata"].get("name") == "example.com"]
    (found,) = group["versions"][0]["resources"]
    assert (found["resource"], found["shortNames"], found["scope"]) == ("widgets", ["wd"], "Namespaced")
    paths = (await api.get("/openapi/v3")).data["paths"]
    assert "apis/example.com/v1" in paths and "apis/example.com/v1" not in index
    document = (await api.get(paths["apis/example.com/v1"]["serverRelativeURL"])).data
    assert any(schema.get("x-kubernetes-group-version-kind") for schema in document["components"]["schemas"].values())
    assert (await api.post(WIDGETS, widget(spec={"color": "red"}))).status == 201
    assert (await api.get(f"{WIDGETS}/a")).data["spec"] == {"color": "red"}
    # Another kind joins a group and a version that clients have read.
    other = definition(names={"plural": "gizmos", "kind": "Gizmo"})
    assert (await api.post(CRDS, other | {"metadata": {"name": "gizmos.example.com"}})).status == 201
    paths = (await api.get("/openapi/v3")).data["paths"]
    document = (await api.get(paths["apis/example.com/v1"]["serverRelativeURL"])).data
    assert {"com.example.v1.Widget", "com.example.v1.Gizmo"} < set(document["components"]["schemas"])
    second = (await api.get("/openapi/v2")).data
    assert {"com.example.v1.Widget", "com.example.v1.Gizmo"} < set(second["definitions"])


@pytest.mark.spec("kube-api", 102)
@run_by(asyncio.run)
async def test_definitions_are_there_after_a_restart() -> None:
    store = MemoryStore()
    async with Harness(store=store) as api:
        await define(api)
        await api.post(WIDGETS, widget(spec={"color": "red"}))
        async with Harness(store=store) as again:
            assert (await again.get(f"{WIDGETS}/a")).data["spec"] == {"color": "red"}


@pytest.mark.spec("kube-api", 31)
@played
async def test_unknown_fields_are_refused_warned_of_or_dropped(api: Harness, /) -> None:
    await define(api)
    strict = await api.post(f"{WIDGETS}?fieldValidation=Strict", widget(spec={"color": "red", "size": 3}))
    assert strict.status == 400 and 'strict decoding error: unknown field "spec.size"' in strict.data["message"]
    warned = await api.post(f"{WIDGETS}?fieldValidation=Warn", widget(spec={"color": "red", "size": 3}))
    assert warned.status == 201 and warned.warnings == ['299 - "unknown field \\"spec.size\\""']
    silent = await api.post(f"{WIDGETS}?fieldValidation=Ignore", widget("b", spec={"size": 3}))
    assert silent.status == 201 and not silent.warnings
    assert warned.data["spec"] == {"color": "red"} and silent.data["spec"] == {}


@pytest.mark.spec("kube-api", 105)
@played
async def test_defaults_that_came_later_show_on_reads(api: Harness, /) -> None:
    await define(api)
    await api.post(WIDGETS, widget("old", spec={"color": "red"}))
    changed = await redefine(api, versions=[version(color=STRING, size={"type": "integer", "default": 3})])
    assert changed.status == 200, changed.data
    await api.post(WIDGETS, widget("new", spec={"color": "red", "size": 4}))
    assert (await api.get(f"{WIDGETS}/old")).data["spec"] == {"color": "red", "size": 3}
    items = (await api.get(WIDGETS)).data["items"]
    assert {each["metadata"]["name"]: each["spec"]["size"] for each in items} == {"old": 3, "new": 4}
    async with api.watch(f"{WIDGETS}?watch=true") as events:
        seen = [await events.next(), await events.next()]
    assert {each["object"]["metadata"]["name"]: each["object"]["spec"]["size"] for each in seen} == {"old": 3, "new": 4}


@pytest.mark.spec("kube-api", 109)
@played
async def test_versions_without_conversion(api: Harness, /) -> None:
    first, second = version(color=STRING), version("v2", color=STRING, storage=False)
    await define(api, first, second)
    await api.post(WIDGETS, widget(spec={"color": "red"}))
    other = "/apis/example.com/v2/namespaces/default/widgets"
    found = (await api.get(f"{other}/a")).data
    assert (found["apiVersion"], found["spec"]) == ("example.com/v2", {"color": "red"})
    assert (await api.get(other)).data["items"][0]["apiVersion"] == "example.com/v2"
    # Another version is stored from now on; what is stored already stays readable.
    moved = await redefine(api, versions=[{**first, "storage": False}, {**second, "storage": True}])
    assert moved.data["status"]["storedVersions"] == ["v1", "v2"]
    assert (await api.post(other, widget("b", "v2", spec={"color": "blue"}))).status == 201
    for path, wanted in ((WIDGETS, "example.com/v1"), (other, "example.com/v2")):
        items = (await api.get(path)).data["items"]
        assert [(each["apiVersion"], each["spec"]["color"]) for each in items] == [(wanted, "red"), (wanted, "blue")]
    # A version that objects may be stored in cannot go.
    gone = await redefine(api, versions=[{**second, "storage": True}])
    assert gone.status == 422 and gone.causes["status.storedVersions[0]"].endswith("must appear in spec.versions")
    crd = (await api.get(f"{CRDS}/widgets.example.com")).data
    crd["status"]["storedVersions"] = ["v2"]
    assert (await api.put(f"{CRDS}/widgets.example.com/status", crd)).status == 200
    assert (await redefine(api, versions=[{**second, "storage": True}])).status == 200
    assert (await api.get(WIDGETS)).status == 404
    assert [each["apiVersion"] for each in (await api.get(other)).data["items"]] == ["example.com/v2", "example.com/v2"]


@pytest.mark.spec("kube-api", 109)
@played
async def test_versions_with_other_schemas_show_what_they_have(api: Harness, /) -> None:
    size = {"type": "integer", "default": 7}
    await define(api, version(color=STRING), version("v2", size=size, storage=False))
    await api.post(WIDGETS, widget(spec={"color": "red"}))
    # Defaults on a read are those of the version that is stored, and what that version does not declare is not stored.
    found = (await api.get("/apis/example.com/v2/namespaces/default/widgets/a")).data
    assert found["spec"] == {}
    made = await api.post("/apis/example.com/v2/namespaces/default/widgets", widget("b", "v2", spec={}))
    assert made.data["spec"] == {}


@pytest.mark.spec("kube-api", 110)
@pytest.mark.spec("kube-api", 39)
@pytest.mark.spec("kube-api", 61, "field selectors")
@played
async def test_selectable_fields(api: Harness, /) -> None:
    await define(api, version(color=STRING, size=STRING, selectableFields=[{"jsonPath": ".spec.color"}]))
    for name, color in (("a", "red"), ("b", "blue"), ("c", "red")):
        await api.post(WIDGETS, widget(name, spec={"color": color}))
    found = (await api.get(f"{WIDGETS}?fieldSelector=spec.color=red")).data["items"]
    assert [each["metadata"]["name"] for each in found] == ["a", "c"]
    unknown = await api.get(f"{WIDGETS}?fieldSelector=spec.size=1")
    assert unknown.status == 400 and "field label not supported: spec.size" in unknown.data["message"]
    async with api.watch(f"{WIDGETS}?watch=true&fieldSelector=spec.color=red") as events:
        await events.take(2)
        await api.merge(f"{WIDGETS}/a", {"spec": {"color": "blue"}})
        await api.merge(f"{WIDGETS}/b", {"spec": {"color": "red"}})
        await api.merge(f"{WIDGETS}/b", {"spec": {"size": "2"}})
        found = [(each["type"], each["object"]["metadata"]["name"]) for each in await events.take(3)]
        assert found == [("DELETED", "a"), ("ADDED", "b"), ("MODIFIED", "b")]


@pytest.mark.spec("kube-api", 111)
@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ({"singular": "widget"}, "SingularConflict"),
        ({"shortNames": ["wd"]}, "ShortNamesConflict"),
        ({"kind": "Widget"}, "KindConflict"),
        ({"listKind": "WidgetList"}, "ListKindConflict"),
    ],
)
@played
async def test_names_that_are_taken(api: Harness, /, names: dict[str, Any], reason: str) -> None:
    await define(api, names={"shortNames": ["wd"]})
    taken = {"singular": "gadget", "listKind": "GadgetList", **names}
    made = await define(api, plural="gadgets", names=taken)
    assert conditions(made.data) == {"NamesAccepted": ("False", reason), "Established": ("False", "NotAccepted")}
    path = "/apis/example.com/v1/namespaces/default/gadgets"
    assert (await api.get(path)).status == 404
    # When the names come free they are given out.
    await api.delete(f"{CRDS}/widgets.example.com")
    for _ in range(200):
        if (await api.get(path)).status == 200:
            break
        await asyncio.sleep(0)
    assert conditions((await api.get(f"{CRDS}/gadgets.example.com")).data)["Established"][0] == "True"


@pytest.mark.spec("kube-api", 111)
@played
async def test_two_that_come_together_do_not_both_get_a_name(api: Harness, /) -> None:
    one, two = definition(names={"shortNames": ["wd"]}), definition(plural="gadgets", names={"shortNames": ["wd"]})
    made = await asyncio.gather(api.post(CRDS, one), api.post(CRDS, two))
    assert [conditions(each.data)["NamesAccepted"] for each in made] == [("True", "NoConflicts"), ("False", "ShortNamesConflict")]


@pytest.mark.spec("kube-api", 111)
@played
async def test_the_servers_own_names_are_taken(api: Harness, /) -> None:
    crd = definition()
    crd["metadata"]["name"] = "virtualmachines.kubevirt.io"
    crd["spec"] |= {"group": "kubevirt.io", "names": {"plural": "virtualmachines", "kind": "VirtualMachine"}}
    assert (await api.post(CRDS, crd)).reason == "AlreadyExists"
    crd["metadata"]["name"] = "machines.kubevirt.io"
    crd["spec"]["names"] |= {"plural": "machines"}
    made = await api.post(CRDS, crd)
    assert conditions(made.data)["NamesAccepted"] == ("False", "SingularConflict")


@pytest.mark.spec("kube-api", 111)
@played
async def test_what_cannot_be_changed(api: Harness, /) -> None:
    await define(api)
    for change, field in (
        ({"scope": "Cluster"}, "spec.scope"),
        ({"group": "example.org"}, "spec.group"),
        ({"names": {"plural": "gadgets"}}, "spec.names.plural"),
        ({"names": {"kind": "Gadget"}}, "spec.names.kind"),
    ):
        said = await redefine(api, **change)
        assert said.status == 422 and "field is immutable" in said.causes[field]


@pytest.mark.spec("kube-api", 112)
@pytest.mark.spec("kube-api", 70)
@played
async def test_deleting_a_definition(api: Harness, /) -> None:
    await define(api)
    await api.post(WIDGETS, widget("plain"))
    await api.post(WIDGETS, {**widget("held"), "metadata": {"name": "held", "finalizers": ["example.com/mine"]}})
    await api.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "other"}})
    async with api.watch(f"{WIDGETS}?watch=true") as events, api.watch("/api/v1/configmaps?watch=true") as others:
        deleted = await api.delete(f"{CRDS}/widgets.example.com")
        assert conditions(deleted.data)["Terminating"] == ("True", "InstanceDeletionInProgress")
        async with asyncio.timeout(5):
            await events.ended.wait()
        assert not others.ended.is_set()
    await settle(api, f"{WIDGETS}/plain")
    refused = await api.post(WIDGETS, widget("late"))
    assert refused.status == 405
    (listed,) = (await api.get("/apis/example.com/v1")).data["resources"]
    assert listed["verbs"] == ["delete", "deletecollection", "get", "list", "watch"]
    held = (await api.get(f"{WIDGETS}/held")).data
    assert held["metadata"]["deletionTimestamp"]
    assert (await api.get(f"{CRDS}/widgets.example.com")).status == 200
    assert (await api.merge(f"{WIDGETS}/held", {"metadata": {"finalizers": None}})).status == 200
    await settle(api, f"{CRDS}/widgets.example.com")
    assert (await api.get(WIDGETS)).status == 404
    assert (await api.get("/apis/example.com")).status == 404
    # The name is free again, and nothing of the old objects is left.
    await define(api)
    assert (await api.get(WIDGETS)).data["items"] == []


@pytest.mark.spec("kube-api", 113)
@played
async def test_deprecated_and_unserved_versions(api: Harness, /) -> None:
    old = version("v1beta1", color=STRING, storage=False, deprecated=True)
    older = version("v1alpha1", color=STRING, storage=False, deprecated=True, deprecationWarning="go away")
    await define(api, version(color=STRING), old, older, version("v0", color=STRING, storage=False, served=False))
    path = "/apis/example.com/{}/namespaces/default/widgets"
    said = await api.get(path.format("v1beta1"))
    assert said.warnings == ['299 - "example.com/v1beta1 Widget is deprecated; use example.com/v1 Widget"']
    assert (await api.get(path.format("v1alpha1"))).warnings == ['299 - "go away"']
    assert not (await api.get(path.format("v1"))).warnings
    assert (await api.get(path.format("v0"))).status == 404


@pytest.mark.spec("kube-api", 108)
@played
async def test_ratcheting(api: Harness, /) -> None:
    await define(api, version(color=STRING, size={"type": "integer"}))
    await api.post(WIDGETS, widget(spec={"color": "RED", "size": 1}))
    strict = {"type": "string", "pattern": "^[a-z]+$", "maxLength": 10, "x-kubernetes-validations": [{"rule": "self != 'RED'"}]}
    assert (await redefine(api, versions=[version(color=strict, size={"type": "integer"})])).status == 200
    assert (await api.merge(f"{WIDGETS}/a", {"spec": {"size": 2}})).status == 200
    said = await api.merge(f"{WIDGETS}/a", {"spec": {"color": "BLUE"}})
    assert said.causes == {"spec.color": "Invalid value: \"BLUE\": spec.color in body should match '^[a-z]+$'"}


@pytest.mark.spec("kube-api", 40)
@played
async def test_columns(api: Harness, /) -> None:
    columns = [
        {"name": "Color", "type": "string", "jsonPath": ".spec.color", "format": "password"},
        {"name": "Odd", "type": "string", "jsonPath": ".spec[", "priority": 1},
    ]
    await define(api, version(color=STRING, additionalPrinterColumns=columns))
    await api.post(WIDGETS, widget(spec={"color": "red"}))
    table = (await api.get(WIDGETS, accept="application/json;as=Table;g=meta.k8s.io;v=v1")).data
    shown = [(each["name"], each["priority"], each["format"]) for each in table["columnDefinitions"]]
    assert shown == [("Name", 0, "name"), ("Color", 0, "password"), ("Odd", 1, "")]
    assert table["columnDefinitions"][1]["description"] == "Custom resource definition column (in JSONPath format): .spec.color"
    assert table["rows"][0]["cells"] == ["a", "red", None]


@pytest.mark.spec("kube-api", 35)
@pytest.mark.spec("kube-api", 37)
@played
async def test_status_and_scale(api: Harness, /) -> None:
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    await define(api, version(replicas={"type": "integer"}, subresources={"status": {}, "scale": scale}))
    made = await api.post(WIDGETS, widget(spec={"replicas": 2}, status={"replicas": 9}))
    assert "status" not in made.data
    said = await api.call("PATCH", f"{WIDGETS}/a/status", {"spec": {"replicas": 5}, "status": {"replicas": 1}}, content_type=MERGE)
    assert (said.data["spec"], said.data["status"], said.data["metadata"]["generation"]) == ({"replicas": 2}, {"replicas": 1}, 1)
    scaled = (await api.get(f"{WIDGETS}/a/scale")).data
    assert (scaled["kind"], scaled["spec"]["replicas"], scaled["status"]["replicas"]) == ("Scale", 2, 1)


MERGE = "application/merge-patch+json"


@pytest.mark.parametrize("schema", [{"type": 5}, {"type": "object", "properties": []}, {"type": "object", "allOf": {}}, "x", []])
@played
async def test_a_schema_that_cannot_be_read_is_a_bad_request(api: Harness, /, schema: Any) -> None:
    said = await api.post(CRDS, definition(version(schema={"openAPIV3Schema": schema})))
    assert said.status in (400, 422), said.data
