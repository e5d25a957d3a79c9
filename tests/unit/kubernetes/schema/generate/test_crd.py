"""CustomResourceDefinitions: the names, the versions, the rules at their places."""

import msgspec
import pytest

from paddock.kubernetes.schema.generate import crd, yamltext
from paddock.kubernetes.schema.kind import Cel, CrossFieldRule, Kind, Scale
from tests.golden import Golden
from tests.unit.kubernetes.schema.sample import SAMPLE, Sample


def test_the_whole_manifest(golden: Golden) -> None:
    golden("sample.crd.yaml", yamltext.dump(crd.manifest(SAMPLE)))


def test_who_gets_one() -> None:
    assert crd.wanted(SAMPLE)
    assert not crd.wanted(msgspec.structs.replace(SAMPLE, builtin=True))
    assert not crd.wanted(msgspec.structs.replace(SAMPLE, stored=False))
    kinds = (SAMPLE, msgspec.structs.replace(SAMPLE, builtin=True))
    assert [made["metadata"]["name"] for made in crd.manifests(kinds)] == ["samples.test.paddock.dev"]


def test_the_short_names_of_an_alias_lead_to_what_it_is_another_form_of() -> None:
    alias = msgspec.structs.replace(SAMPLE, alias_of=("other.dev", "Sample"))
    assert "shortNames" not in crd.manifest(alias)["spec"]["names"]
    assert crd.manifest(SAMPLE)["spec"]["names"]["shortNames"] == ["smp"]


@pytest.mark.parametrize(
    ("group", "asked"),
    [("snapshot.storage.k8s.io", True), ("apps.kubernetes.io", True), ("k8s.cni.cncf.io", False), ("kubevirt.io", False)],
)
def test_groups_of_kubernetes_need_a_word_of_approval(group: str, asked: bool) -> None:
    made = crd.manifest(msgspec.structs.replace(SAMPLE, group=group))
    assert ("api-approved.kubernetes.io" in made["metadata"].get("annotations", {})) is asked


def test_names_follow_from_the_kind() -> None:
    kind = Kind(group="x.dev", kind="BigThing", plural="bigthings", cls=Sample, dialect="x", status=False, columns=(), namespaced=False)
    spec = crd.manifest(kind)["spec"]
    assert spec["names"] == {"kind": "BigThing", "listKind": "BigThingList", "plural": "bigthings", "singular": "bigthing"}
    assert spec["scope"] == "Cluster"
    assert set(spec["versions"][0]) == {"name", "served", "storage", "schema"}


def test_subresources_are_those_of_the_kind() -> None:
    kind = msgspec.structs.replace(SAMPLE, status=False, scale=Scale())
    assert crd.manifest(kind)["spec"]["versions"][0]["subresources"] == {
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.labelSelector",
        }
    }


def _with(cel: Cel) -> Kind:
    return msgspec.structs.replace(
        SAMPLE, rules=(CrossFieldRule("sample/x", "A rule.", lambda value, settings: (), (cel,)),), transitions=()
    )


def test_a_rule_stands_at_its_place_and_names_its_field() -> None:
    schema = crd.schema(_with(Cel("spec.disks[]", "self.name != 'x'", "not x", ".name", "FieldValueForbidden")))
    (rule,) = schema["properties"]["spec"]["properties"]["disks"]["items"]["x-kubernetes-validations"]
    assert rule == {"rule": "self.name != 'x'", "message": "not x", "reason": "FieldValueForbidden", "fieldPath": ".name"}


def test_a_rule_about_the_name_may_look_at_it() -> None:
    schema = crd.schema(_with(Cel("", "self.metadata.name != 'x'", "not x", ".metadata.name")))
    assert schema["x-kubernetes-validations"][0]["fieldPath"] == ".metadata.name"
    assert schema["properties"]["metadata"]["properties"] == {"name": {"type": "string"}, "generateName": {"type": "string"}}


def test_a_reason_that_kubernetes_does_not_know_becomes_invalid() -> None:
    schema = crd.schema(_with(Cel("spec", "true", "x", reason="FieldValueNotSupported")))
    assert schema["properties"]["spec"]["x-kubernetes-validations"][-1]["reason"] == "FieldValueInvalid"


def test_the_values_of_a_map_are_a_place() -> None:
    schema = crd.schema(_with(Cel("spec.labels{}", "self != 'x'", "not x")))
    assert len(schema["properties"]["spec"]["properties"]["labels"]["additionalProperties"]["x-kubernetes-validations"]) == 1


@pytest.mark.parametrize(
    "cel",
    [
        Cel("spec.nothing", "true", "x"),
        Cel("spec.count[]", "true", "x"),
        Cel("spec", "true", "x", ".nothing"),
        Cel("spec", "true", "x", ".disks[].name"),
    ],
)
def test_a_rule_at_a_place_that_is_not_there_is_a_mistake_of_the_declaration(cel: Cel) -> None:
    with pytest.raises(crd.NoSuchPlace, match="sample/x"):
        crd.schema(_with(cel))


def test_one_schema_does_not_change_another() -> None:
    first = crd.schema(SAMPLE)
    first["properties"].clear()
    assert "spec" in crd.schema(SAMPLE)["properties"]
