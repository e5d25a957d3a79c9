"""Pools in both forms and at all three places: what is refused, in which words, and how the forms become one another."""

import copy
from typing import Any

import pytest

from paddock.kubernetes import catalog
from paddock.kubernetes.admission import admit, admit_change
from paddock.kubernetes.meta.wire import from_data, to_data
from paddock.kubernetes.schema.finding import CauseType
from paddock.kubernetes.schema.kind import AGE, AdmissionSettings, Column, Scale
from paddock.kubevirt.kinds.poolform import fold, machine_spec, unfold
from paddock.kubevirt.plan.pool.machines import most_unavailable
from tests.unit.dialects.kubermatic.kinds.objects import FLAT, GONE, NESTED, TEMPLATE, admitted, changed, errors, pool_of, warnings

VERSIONS = ("kubevirt.io/v1alpha1", "pool.kubevirt.io/v1alpha1", "pool.kubevirt.io/v1beta1")
LABELS = {"app": "my-vm-http-pool-member"}
MIGRATION = {"kubevirt.io/allow-pod-bridge-network-live-migration": "true"}
HARDWARE = f"{TEMPLATE}.template.spec"


@pytest.mark.spec("kubermatic", 3)
def test_the_documents_pool_is_accepted_as_it_is() -> None:
    admission = admitted(FLAT)
    assert admission.findings == ()
    assert admission.data == FLAT


@pytest.mark.parametrize("raw", [FLAT, NESTED], ids=["flat", "nested"])
@pytest.mark.parametrize("version", VERSIONS)
def test_both_forms_are_accepted_everywhere(raw: dict[str, Any], version: str) -> None:
    assert admitted({**raw, "apiVersion": version}).findings == ()


@pytest.mark.spec("kubermatic", 5)
def test_both_forms_have_one_normal_form() -> None:
    flat, nested = fold(pool_of(FLAT)), fold(pool_of(NESTED))
    assert flat.spec == nested.spec
    assert fold(nested) is nested


@pytest.mark.spec("kubermatic", 6)
@pytest.mark.parametrize("key", ["domain", "volumes", "networks", "nodeSelector"])
def test_the_forms_are_not_mixed(key: str) -> None:
    value = {"nodeSelector": {"disk": "fast"}}.get(key) or FLAT["spec"]["virtualMachineTemplate"]["spec"][key]
    ((field, message),) = errors(admitted(changed(NESTED, {f"{TEMPLATE}.{key}": value})))
    assert field == TEMPLATE
    assert message.startswith('Invalid value: use either "template" or the flat form')
    assert key in message


@pytest.mark.spec("kubermatic", 7)
@pytest.mark.parametrize("version", VERSIONS)
def test_unknown_keys_are_refused_by_name(version: str) -> None:
    ((field, message),) = errors(admitted(changed(FLAT, {"apiVersion": version, f"{TEMPLATE}.flavour": "large"})))
    assert (field, message) == (f"{TEMPLATE}.flavour", f'unknown field "{TEMPLATE}.flavour"')
    ((field, message),) = errors(admitted(changed(FLAT, {"apiVersion": version, f"{TEMPLATE}.dommain": {}})))
    assert 'did you mean "domain"?' in message


@pytest.mark.spec("kubermatic", 8)
def test_a_flat_pool_comes_back_flat() -> None:
    pool = pool_of(FLAT)
    assert unfold(fold(pool)) == pool
    assert to_data(unfold(fold(pool))) == FLAT


def test_a_nested_pool_survives_both_ways() -> None:
    nested = pool_of(NESTED)
    assert fold(unfold(nested)) == nested
    # What the flat form cannot say stays nested.
    own = pool_of(changed(NESTED, {f"{TEMPLATE}.template.metadata.labels": {"tier": "batch"}}))
    assert unfold(own) is own


@pytest.mark.spec("kubermatic", 9)
def test_the_flat_form_copies_labels_and_annotations() -> None:
    template = fold(pool_of(FLAT)).spec.virtualMachineTemplate.spec.template
    assert template is not None and template.metadata is not None
    assert template.metadata.labels == LABELS
    assert template.metadata.annotations == MIGRATION


@pytest.mark.spec("kubermatic", 46)
def test_the_annotation_about_migration_reaches_what_runs() -> None:
    for raw in (FLAT, NESTED):
        metadata = machine_spec(pool_of(raw)).template.metadata
        assert metadata is not None
        assert metadata.annotations == MIGRATION
    # In the nested form it counts where the running machine has it, and only there.
    outside = changed(NESTED, {f"{TEMPLATE}.template.metadata.annotations": {}})
    metadata = machine_spec(pool_of(outside)).template.metadata
    assert metadata is not None and not metadata.annotations


def test_names_and_namespaces_of_the_template_are_not_copied() -> None:
    named = changed(FLAT, {"spec.virtualMachineTemplate.metadata.name": "x"})
    template = fold(pool_of(named)).spec.virtualMachineTemplate.spec.template
    assert template is not None and template.metadata is not None
    assert template.metadata.name is None


def test_one_form_is_needed() -> None:
    empty = changed(FLAT, {TEMPLATE: {"runStrategy": "Always"}})
    assert (f"{TEMPLATE}.template", "Required value: missing virtual machine template") in errors(admitted(empty))
    without = changed(FLAT, {f"{TEMPLATE}.domain": GONE})
    assert (f"{TEMPLATE}.domain", "Required value") in errors(admitted(without))


# Changes of the hardware, each with the place below it that is named and the words.
WRONG_HARDWARE: tuple[tuple[str, Any, str, str], ...] = (
    ("domain.devices.disks[0].disk.bus", "ide", "domain.devices.disks[0].disk.bus", "use sata"),
    ("domain.devices.disks[0].name", "other", "domain.devices.disks[0].name", "no volume of this name"),
    ("domain.devices.interfaces[0].bridge", {}, "domain.devices.interfaces[0]", "needs exactly one binding, got 2"),
    ("networks[0]", {"name": "default", "multus": {"networkName": "lan"}}, "domain.devices.interfaces[0].name", "pod network"),
    ("domain.memory.guest", "much", "domain.memory.guest", "Kubernetes quantity"),
)


@pytest.mark.parametrize(("change", "value", "field", "words"), WRONG_HARDWARE)
def test_findings_stand_where_the_user_wrote(change: str, value: Any, field: str, words: str) -> None:
    for raw, at in ((FLAT, TEMPLATE), (NESTED, HARDWARE)):
        # The bus is KubeVirt's to refuse; Paddock's own engine has it.
        found = errors(admitted(changed(raw, {f"{at}.{change}": value}), target="cluster"))
        assert any(place == f"{at}.{field}" and words in message for place, message in found), found


@pytest.mark.parametrize("raw", [FLAT, NESTED], ids=["flat", "nested"])
def test_the_rules_of_machines_hold(raw: dict[str, Any]) -> None:
    source = f"{TEMPLATE}.dataVolumeTemplates[0].spec"
    cases: tuple[tuple[dict[str, Any], str, str], ...] = (
        ({f"{TEMPLATE}.running": True}, f"{TEMPLATE}.running", "running is set too, choose one"),
        ({f"{TEMPLATE}.runStrategy": "Sometimes"}, f"{TEMPLATE}.runStrategy", "Unsupported value"),
        ({f"{source}.sourceRef.apiGroup": "foo"}, f"{source}.sourceRef.apiGroup", 'only "cdi.kubevirt.io"'),
        ({f"{source}.pvc.accessModes": []}, f"{source}.pvc.accessModes", "Required value"),
    )
    for changes, field, words in cases:
        found = errors(admitted(changed(raw, changes)))
        assert any(place == field and words in message for place, message in found), found


@pytest.mark.spec("kubermatic", 49)
def test_replicas() -> None:
    assert pool_of(changed(FLAT, {"spec.replicas": GONE})).spec.replicas == 1
    none = changed(FLAT, {"spec.replicas": 0})
    assert pool_of(none).spec.replicas == 0
    assert admitted(none).data["spec"]["replicas"] == 0
    assert to_data(pool_of(none))["spec"]["replicas"] == 0
    assert errors(admitted(changed(FLAT, {"spec.replicas": -1}))) == [
        ("spec.replicas", "Invalid value: -1: must be greater than or equal to 0")
    ]


@pytest.mark.spec("kubermatic", 50)
def test_the_selector_is_the_labels_of_the_machines_and_stays() -> None:
    ((field, message),) = errors(admitted(changed(FLAT, {"spec.selector.matchLabels": {"app": "other"}})))
    assert field == "spec.selector"
    assert "does not match virtualMachineTemplate.metadata.labels" in message
    empty: dict[str, Any]
    for empty in ({}, {"matchLabels": {}}):
        assert errors(admitted(changed(FLAT, {"spec.selector": empty}))) == [("spec.selector", "Invalid value: selector must not be empty")]
    wider = changed(FLAT, {"spec.virtualMachineTemplate.metadata.labels": {**LABELS, "b": "c"}, "spec.selector.matchLabels": {"b": "c"}})
    change = admit_change(pool_of(FLAT), admitted(wider), AdmissionSettings())
    assert [(found.field, found.message) for found in change.findings] == [("spec.selector", "Invalid value: field is immutable")]
    same = admit_change(pool_of(FLAT), admitted(changed(FLAT, {"spec.replicas": 5})), AdmissionSettings())
    assert same.findings == ()


def test_selectors_are_readable() -> None:
    expressions = [{"key": "app", "operator": "In"}]
    found = errors(admitted(changed(FLAT, {"spec.selector": {"matchExpressions": expressions}})))
    assert "spec.selector.matchExpressions[0].values" in [field for field, _ in found]
    good = [{"key": "app", "operator": "In", "values": ["my-vm-http-pool-member", "x"]}, {"key": "old", "operator": "DoesNotExist"}]
    assert admitted(changed(FLAT, {"spec.selector": {"matchExpressions": good}})).findings == ()


@pytest.mark.spec("kubermatic", 59)
def test_how_many_may_be_unavailable() -> None:
    def most(value: Any, replicas: int = 3) -> int:
        return most_unavailable(pool_of(changed(FLAT, {"spec.maxUnavailable": value, "spec.replicas": replicas})))

    assert (most("50%"), most("50%", 4), most("99%"), most("1%"), most("100%"), most(2)) == (1, 2, 2, 1, 3, 2)
    assert most_unavailable(pool_of(FLAT)) == 3
    for wrong, words in (
        ("0%", "must be a percentage from 1% to 100%"),
        ("101%", "must be a percentage from 1% to 100%"),
        ("5", "must be a percentage from 1% to 100%"),
        (0, "or a number of at least 1"),
    ):
        ((field, message),) = errors(admitted(changed(FLAT, {"spec.maxUnavailable": wrong})))
        assert field == "spec.maxUnavailable"
        assert words in message


@pytest.mark.spec("kubermatic", 64)
@pytest.mark.parametrize("name", ["updateStrategy", "scaleInStrategy"])
def test_one_strategy_at_a_time(name: str) -> None:
    for strategies in (("unmanaged", "proactive"), ("unmanaged", "opportunistic"), ("opportunistic", "proactive")):
        ((field, message),) = errors(admitted(changed(FLAT, {f"spec.{name}": {each: {} for each in strategies}})))
        assert field == f"spec.{name}"
        assert "set at most one of unmanaged, opportunistic, proactive" in message
    for strategy in ("unmanaged", "opportunistic", "proactive"):
        assert admitted(changed(FLAT, {f"spec.{name}": {strategy: {}}})).findings == ()


@pytest.mark.spec("kubermatic", 57)
@pytest.mark.parametrize("strategy", ["opportunistic", "proactive"])
def test_memory_is_not_kept_by_the_engine(strategy: str) -> None:
    online = changed(FLAT, {f"spec.scaleInStrategy.{strategy}.statePreservation": "Online"})
    ((field, message),) = errors(admitted(online))
    assert field == f"spec.scaleInStrategy.{strategy}.statePreservation"
    assert "not supported" in message
    assert admitted(online, target="cluster").findings == ()
    offline = changed(FLAT, {f"spec.scaleInStrategy.{strategy}.statePreservation": "Offline"})
    assert admitted(offline).findings == ()


WRONG_FIELDS = (
    ({"spec.scaleInStrategy.proactive.selectionPolicy.sortPolicy": "Biggest"}, "spec.scaleInStrategy.proactive.selectionPolicy.sortPolicy"),
    ({"spec.scaleInStrategy.proactive.statePreservation": "Some"}, "spec.scaleInStrategy.proactive.statePreservation"),
    ({"spec.autohealing.startUpFailureThreshold": 0}, "spec.autohealing.startUpFailureThreshold"),
    ({"spec.autohealing.minFailingToStartDuration": "soon"}, "spec.autohealing.minFailingToStartDuration"),
    ({"spec.virtualMachineTemplate": GONE}, "spec.virtualMachineTemplate"),
    ({"spec.selector": GONE}, "spec.selector"),
    ({"metadata.name": "x" * 58}, "metadata.name"),
)


@pytest.mark.parametrize(("changes", "field"), WRONG_FIELDS)
def test_fields_have_bounds(changes: dict[str, Any], field: str) -> None:
    assert field in [place for place, _ in errors(admitted(changed(FLAT, changes)))]


def test_names_leave_room_for_the_number() -> None:
    assert admitted(changed(FLAT, {"metadata.name": "x" * 57})).findings == ()


def test_what_is_missing_is_told_as_missing() -> None:
    causes = [found.cause for found in admitted(changed(FLAT, {"spec.virtualMachineTemplate": GONE})).findings]
    assert CauseType.REQUIRED in causes


@pytest.mark.parametrize("annotation", ["ovn.kubernetes.io/logical_switch", "k8s.v1.cni.cncf.io/networks"])
def test_network_annotations_must_reach_what_runs(annotation: str) -> None:
    note = {annotation: "lan"}
    around = changed(NESTED, {"spec.virtualMachineTemplate.metadata.annotations": {**MIGRATION, **note}})
    ((field, message),) = warnings(admitted(around))
    assert field == f"spec.virtualMachineTemplate.metadata.annotations[{annotation}]"
    assert "put it into spec.virtualMachineTemplate.spec.template.metadata.annotations" in message
    # The flat form has one place for both.
    flat = changed(FLAT, {"spec.virtualMachineTemplate.metadata.annotations": {**MIGRATION, **note}})
    assert admitted(flat).findings == ()
    ((field, message),) = warnings(admitted(changed(FLAT, {"metadata.annotations": note})))
    assert field == f"metadata.annotations[{annotation}]"
    assert "put it into spec.virtualMachineTemplate.metadata.annotations" in message


@pytest.mark.parametrize(
    ("raw", "at"),
    [(FLAT, "spec.virtualMachineTemplate.metadata"), (NESTED, f"{TEMPLATE}.template.metadata")],
    ids=["flat", "nested"],
)
def test_labels_of_kubevirts_own_are_refused_where_they_stand(raw: dict[str, Any], at: str) -> None:
    labels = {**LABELS, "kubevirt.io/nodeName": "here"}
    ((field, message),) = errors(admitted(changed(raw, {f"{at}.labels": labels})))
    assert field == f"{at}.labels"
    assert "kubevirt.io/nodeName" in message


def test_each_pool_is_judged_by_itself() -> None:
    """By the same settings, one after the other, and by other settings."""
    settings = AdmissionSettings()
    broken = changed(FLAT, {f"{TEMPLATE}.runStrategy": GONE})
    ide = changed(FLAT, {f"{TEMPLATE}.domain.devices.disks[0].disk.bus": "ide"})
    assert [admit(raw, settings).accepted for raw in (FLAT, broken, FLAT, ide)] == [True, False, True, True]
    pool = pool_of(ide)
    kind = catalog.find("pool.kubevirt.io", "VirtualMachinePool")
    assert kind is not None
    for target, words in (("embedded", "warning"), ("cluster", "error"), ("embedded", "warning")):
        settings = AdmissionSettings(target=target)
        assert [found.severity for rule in kind.rules for found in rule.check(pool, settings)] == [words]


def test_a_broken_pool_is_told_everything_at_once() -> None:
    broken = changed(
        FLAT,
        {"spec.replicas": -1, "spec.selector": {}, f"{TEMPLATE}.domain": 5, f"{TEMPLATE}.volumes[0].name": 7, "metadata.name": "A_B"},
    )
    fields = {field for field, _ in errors(admitted(broken))}
    assert {"spec.replicas", "spec.selector", f"{TEMPLATE}.domain", f"{TEMPLATE}.volumes[0].name", "metadata.name"} <= fields


def test_forms_of_odd_pools() -> None:
    """For any input, folding neither fails nor changes what is not flat."""
    template: dict[str, Any]
    for template in ({}, {"spec": {}}, {"spec": {"template": {}}}, {"spec": {"domain": {}, "template": {}}}):
        raw = changed(FLAT, {"spec.virtualMachineTemplate": template})
        value = admitted(raw).value
        assert value is not None
        pool = from_data(to_data(value), pool_of(FLAT).__class__)
        assert fold(pool) is pool
        assert unfold(fold(pool)).spec.selector == pool.spec.selector
        machine_spec(pool)


def test_the_kinds_of_a_pool() -> None:
    canonical, alias = catalog.find("pool.kubevirt.io", "VirtualMachinePool"), catalog.find("kubevirt.io", "VirtualMachinePool")
    assert canonical is not None and alias is not None
    assert alias.alias_of == ("pool.kubevirt.io", "VirtualMachinePool")
    assert (alias.api_version, canonical.api_version) == ("kubevirt.io/v1alpha1", "pool.kubevirt.io/v1beta1")
    assert (alias.short_names, alias.categories) == ((), ())
    assert canonical.short_names == ("vmpool", "vmpools")
    assert canonical.categories == ("all",)
    for kind in (canonical, alias):
        assert kind.scale == Scale(".spec.replicas", ".status.replicas", ".status.labelSelector")
        assert kind.cls is canonical.cls


@pytest.mark.spec("kubermatic", 72)
def test_columns() -> None:
    """Printer columns as in section 3 of the document."""

    def names(group: str, kind: str, *, wide: bool = False) -> list[str]:
        found = catalog.find(group, kind)
        assert found is not None
        return [column.name for column in found.columns if column.wide is wide]

    assert names("kubevirt.io", "VirtualMachine") == ["Age", "Status", "Ready"]
    assert names("kubevirt.io", "VirtualMachineInstance") == ["Age", "Phase", "IP", "NodeName", "Ready"]
    assert names("kubevirt.io", "VirtualMachineInstance", wide=True) == ["Live-Migratable", "Paused"]
    assert names("kubevirt.io", "VirtualMachinePool") == ["Desired", "Current", "Ready", "Age"]
    assert names("pool.kubevirt.io", "VirtualMachinePool") == ["Desired", "Current", "Ready", "Age"]
    assert names("cdi.kubevirt.io", "DataVolume") == ["Phase", "Progress", "Restarts", "Age"]
    assert names("cdi.kubevirt.io", "DataSource") == ["Age", "Type", "URL", "Ready"]


def test_columns_show_what_is_there() -> None:
    kind = catalog.find("pool.kubevirt.io", "VirtualMachinePool")
    assert kind is not None
    assert [(column.name, column.path) for column in kind.columns] == [
        ("Desired", ".spec.replicas"),
        ("Current", ".status.replicas"),
        ("Ready", ".status.readyReplicas"),
        (AGE.name, AGE.path),
    ]
    assert all(isinstance(column, Column) for column in kind.columns)


def test_admission_leaves_the_document_alone() -> None:
    before = copy.deepcopy(FLAT)
    admitted(FLAT)
    assert before == FLAT
