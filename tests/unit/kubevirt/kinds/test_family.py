"""The kinds around the machine: how they are served, what is refused, and what may change (docs/spec/kubevirt.md 1.1, 5 to 7)."""

import copy
from typing import Any

import pytest

from paddock.kubernetes import catalog
from paddock.kubernetes.admission import AdmissionResult, admit, admit_change
from paddock.kubernetes.schema.finding import Severity
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.kinds.dataimportcron import is_schedule

CDI, SNAPSHOT = "cdi.kubevirt.io", "snapshot.kubevirt.io"
INSTANCETYPE = "instancetype.kubevirt.io"
BACKUP = "backup.kubevirt.io"
V1 = "v1* v1alpha3"
BETA = "v1alpha1 v1beta1*"
_SNAPSHOT_COLUMNS = "SourceKind SourceName Phase ReadyToUse CreationTime Error"

# group, kind, plural, short names, scope, versions (* is stored), columns, status
SERVED = (
    ("kubevirt.io", "VirtualMachineInstanceReplicaSet", "vmirs vmirss", True, V1, "Desired Current Ready Age", True),
    ("kubevirt.io", "VirtualMachineInstanceMigration", "vmim vmims", True, V1, "Phase VMI", True),
    ("kubevirt.io", "VirtualMachineInstancePreset", "vmipreset vmipresets", True, "v1 v1alpha3*", "Age", False),
    ("kubevirt.io", "KubeVirt", "kv kvs", True, V1, "Age Phase", True),
    ("pool.kubevirt.io", "VirtualMachinePool", "vmpool vmpools", True, BETA, "Desired Current Ready Age", True),
    (SNAPSHOT, "VirtualMachineSnapshot", "vmsnapshot vmsnapshots", True, BETA, _SNAPSHOT_COLUMNS, True),
    (
        SNAPSHOT,
        "VirtualMachineSnapshotContent",
        "vmsnapshotcontent vmsnapshotcontents",
        True,
        BETA,
        "ReadyToUse CreationTime Error",
        True,
    ),
    (SNAPSHOT, "VirtualMachineRestore", "vmrestore vmrestores", True, BETA, "TargetKind TargetName Complete RestoreTime", True),
    (
        "clone.kubevirt.io",
        "VirtualMachineClone",
        "vmclone vmclones",
        True,
        BETA,
        "Phase SourceVirtualMachine TargetVirtualMachine",
        True,
    ),
    ("export.kubevirt.io", "VirtualMachineExport", "vmexport vmexports", True, "v1alpha1 v1beta1 v1*", "SourceKind SourceName Phase", True),
    (BACKUP, "VirtualMachineBackup", "vmbackup vmbackups", True, "v1alpha1*", "SourceKind SourceName Type CheckpointName", True),
    (
        BACKUP,
        "VirtualMachineBackupTracker",
        "vmbackuptracker vmbackuptrackers",
        True,
        "v1alpha1*",
        "SourceKind SourceName LatestCheckpoint CheckpointTime",
        True,
    ),
    (INSTANCETYPE, "VirtualMachineInstancetype", "vminstancetype vminstancetypes vmf vmfs", True, "v1beta1*", "Age", False),
    (
        INSTANCETYPE,
        "VirtualMachineClusterInstancetype",
        "vmclusterinstancetype vmclusterinstancetypes vmcf vmcfs",
        False,
        "v1beta1*",
        "Age",
        False,
    ),
    (INSTANCETYPE, "VirtualMachinePreference", "vmpref vmprefs vmp vmps", True, "v1beta1*", "Age", False),
    (INSTANCETYPE, "VirtualMachineClusterPreference", "vmcp vmcps", False, "v1beta1*", "Age", False),
    ("migrations.kubevirt.io", "MigrationPolicy", "", False, "v1alpha1*", "Age", True),
    (CDI, "DataVolume", "dv dvs", True, "v1beta1*", "Phase Progress Restarts Age", True),
    (CDI, "DataSource", "das", True, "v1beta1*", "Age Type URL Ready", False),
    (CDI, "DataImportCron", "dic dics", True, "v1beta1*", "Format", False),
    (CDI, "VolumeImportSource", "", True, "v1beta1*", "Age", False),
    (CDI, "VolumeUploadSource", "", True, "v1beta1*", "Age", False),
    (CDI, "VolumeCloneSource", "", True, "v1beta1*", "Age", False),
    (CDI, "StorageProfile", "", False, "v1beta1*", "Age", True),
    (CDI, "CDIConfig", "", False, "v1beta1*", "Age", False),
    (CDI, "CDI", "cdi cdis", False, BETA, "Age Phase", True),
    (CDI, "ObjectTransfer", "ot ots", False, "v1beta1*", "Age Phase", True),
    ("upload.cdi.kubevirt.io", "UploadTokenRequest", "utr utrs", True, BETA, "", False),
)
PLURALS = {"MigrationPolicy": "migrationpolicies", "CDI": "cdis"}
WITH_SCALE = ("VirtualMachineInstanceReplicaSet", "VirtualMachinePool")
NOT_IN_ALL = ("MigrationPolicy",)


@pytest.mark.parametrize("row", SERVED, ids=lambda row: row[1])
def test_kinds_are_served_as_upstream_serves_them(row: tuple[str, str, str, bool, str, str, bool]) -> None:
    group, name, short_names, namespaced, versions, columns, status = row
    kind = catalog.find(group, name)
    assert kind is not None
    assert kind.plural == PLURALS.get(name, f"{name.lower()}s")
    assert kind.singular == name.lower()
    assert kind.short_names == tuple(short_names.split())
    assert kind.namespaced is namespaced
    assert " ".join(f"{each.name}{'*' if each.storage else ''}" for each in kind.versions) == versions
    assert [column.name for column in kind.columns] == columns.split()
    assert kind.status is status
    assert (kind.scale is not None) is (name in WITH_SCALE)
    # kubectl get all lists every machine-like kind.
    if group.endswith("kubevirt.io") and not group.endswith(CDI):
        assert kind.categories == ("all",)


def test_no_kind_of_the_family_is_missing() -> None:
    known = {(kind.group, kind.kind) for kind in catalog.every() if kind.dialect == "kubevirt"}
    machines = {("kubevirt.io", "VirtualMachine"), ("kubevirt.io", "VirtualMachineInstance")}
    assert known == {(row[0], row[1]) for row in SERVED} | machines


# Documents that CDI 1.66 takes, and the fields of which Paddock says that they have no effect here.
TLS = {"type": "Custom", "custom": {"ciphers": ["ECDHE-RSA-AES128-GCM-SHA256"], "minTLSVersion": "VersionTLS12"}}
CONFIG = {
    "webhookPvcRendering": "Disabled",
    "tlsSecurityProfile": TLS,
    "podResourceRequirements": {"claims": [{"name": "gpu", "request": "one"}], "limits": {"cpu": "1"}},
}
VDDK = {"url": "https://vc", "uuid": "1", "backingFile": "d", "thumbprint": "t", "secretRef": "s", "certConfigMap": "ca"}
SIZE = {"resources": {"requests": {"storage": "1Gi"}}}
DISK_SPEC = {"source": {"vddk": VDDK}, "serviceAccountName": "importer", "priorityClassName": "high", "storage": SIZE}
NEWEST: tuple[tuple[str, str, dict[str, Any], set[str]], ...] = (
    ("DataVolume", "v1beta1", DISK_SPEC, {"spec.priorityClassName", "spec.serviceAccountName"}),
    ("CDIConfig", "v1beta1", CONFIG, {f"spec.{name}" for name in CONFIG}),
    ("CDI", "v1alpha1", {"config": CONFIG}, {f"spec.config.{name}" for name in CONFIG}),
    ("CDI", "v1beta1", {"config": {"tlsSecurityProfile": {"type": "Old", "old": {}, "modern": None}}}, {"spec.config.tlsSecurityProfile"}),
)


@pytest.mark.spec("kubevirt", 179, 181)
@pytest.mark.parametrize(("kind", "version", "spec", "without_effect"), NEWEST, ids=lambda value: value if isinstance(value, str) else "")
def test_what_the_newest_cdi_takes_is_taken(kind: str, version: str, spec: dict[str, Any], without_effect: set[str]) -> None:
    name = "config" if kind == "CDIConfig" else "x"
    document = {"apiVersion": f"{CDI}/{version}", "kind": kind, "metadata": {"name": name}, "spec": spec}
    found = admitted(document)
    assert errors(found) == []
    assert {each.field for each in found.findings} == without_effect


def test_tokens_are_asked_for_and_not_stored() -> None:
    unstored = [kind.kind for kind in catalog.every() if not kind.stored]
    assert unstored == ["UploadTokenRequest"]


def thing(group: str, kind: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    found = catalog.find(group, kind)
    assert found is not None
    return {"apiVersion": found.api_version, "kind": kind, "metadata": {"name": "x", **metadata}, "spec": spec}


def admitted(raw: dict[str, Any], **settings: Any) -> AdmissionResult:
    return admit(raw, AdmissionSettings(**settings))


def errors(admission: AdmissionResult) -> list[tuple[str, str]]:
    return [(found.field, found.message) for found in admission.findings if found.severity is Severity.ERROR]


VM = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web"}
SHOT = {"apiGroup": SNAPSHOT, "kind": "VirtualMachineSnapshot", "name": "before"}
POD = {"apiGroup": "", "kind": "Pod", "name": "web"}
PVC = {"kind": "PersistentVolumeClaim", "name": "web"}
RESTORE = {"target": VM, "virtualMachineSnapshotName": "before"}
CRON = {
    "schedule": "30 1 * * *",
    "managedDataSource": "fedora",
    "template": {"spec": {"source": {"registry": {"url": "docker://quay.io/x/y:1"}}, "storage": SIZE}},
}
MOVE = {"source": {"kind": "DataVolume", "namespace": "a", "name": "x"}, "target": {"namespace": "b"}}
SMALL = {"cpu": {"guest": 1}, "memory": {"guest": "1Gi"}}
HARDWARE = {"memory": {"guest": "1Gi"}, "devices": {}}
REPLICAS = {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"domain": HARDWARE}}}

GOOD = (
    (SNAPSHOT, "VirtualMachineSnapshot", {"source": VM, "deletionPolicy": "Retain", "failureDeadline": "1m30s"}),
    (SNAPSHOT, "VirtualMachineRestore", {**RESTORE, "volumeRestorePolicy": "PrefixTargetName", "volumeOwnershipPolicy": "None"}),
    (SNAPSHOT, "VirtualMachineRestore", {**RESTORE, "patches": ['{"op": "remove", "path": "/spec/running"}']}),
    (SNAPSHOT, "VirtualMachineRestore", {**RESTORE, "patches": ['[{"op": "remove", "path": "/metadata/labels/a"}]']}),
    ("clone.kubevirt.io", "VirtualMachineClone", {"source": VM}),
    ("clone.kubevirt.io", "VirtualMachineClone", {"source": SHOT, "target": VM, "labelFilters": ["*", "!a/*", "b", "!c/d"]}),
    ("export.kubevirt.io", "VirtualMachineExport", {"source": VM}),
    ("export.kubevirt.io", "VirtualMachineExport", {"source": SHOT, "ttlDuration": "1h"}),
    ("export.kubevirt.io", "VirtualMachineExport", {"source": PVC, "tokenSecretRef": "token"}),
    ("export.kubevirt.io", "VirtualMachineExport", {"source": {**PVC, "apiGroup": ""}}),
    (CDI, "DataImportCron", CRON),
    (CDI, "DataImportCron", {**CRON, "schedule": ""}),
    (CDI, "ObjectTransfer", MOVE),
    (INSTANCETYPE, "VirtualMachineInstancetype", SMALL),
    (INSTANCETYPE, "VirtualMachinePreference", {"cpu": {"preferredCPUTopology": "preferCores"}}),
    (INSTANCETYPE, "VirtualMachinePreference", {"cpu": {"spreadOptions": {"across": "CoresThreads", "ratio": 2}}}),
    ("kubevirt.io", "VirtualMachineInstanceReplicaSet", REPLICAS),
    ("upload.cdi.kubevirt.io", "UploadTokenRequest", {"pvcName": "disk"}),
    (CDI, "VolumeCloneSource", {"source": {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "x"}}),
    (CDI, "StorageProfile", {"claimPropertySets": [{"accessModes": ["ReadWriteOnce"], "volumeMode": "Block"}]}),
)


@pytest.mark.parametrize(("group", "kind", "spec"), GOOD, ids=lambda value: value if isinstance(value, str) else "")
def test_accepted(group: str, kind: str, spec: dict[str, Any]) -> None:
    assert admitted(thing(group, kind, spec)).findings == ()


def _cron(**template: Any) -> dict[str, Any]:
    return {**CRON, "template": {"spec": {"storage": SIZE, **template}}}


# group, kind, spec, place, words
REFUSED: tuple[tuple[str, str, dict[str, Any], str, str], ...] = (
    (SNAPSHOT, "VirtualMachineSnapshot", {"source": POD}, "spec.source.kind", 'supported values: "VirtualMachine"'),
    (SNAPSHOT, "VirtualMachineSnapshot", {"source": {**VM, "apiGroup": "x.io"}}, "spec.source.apiGroup", '"kubevirt.io"'),
    (SNAPSHOT, "VirtualMachineSnapshot", {"source": {"kind": "VirtualMachine", "name": "a"}}, "spec.source.apiGroup", "Required"),
    (SNAPSHOT, "VirtualMachineSnapshot", {"source": {**VM, "name": ""}}, "spec.source.name", "must not be empty"),
    (SNAPSHOT, "VirtualMachineSnapshot", {"source": VM, "deletionPolicy": "Keep"}, "spec.deletionPolicy", "Unsupported value"),
    (SNAPSHOT, "VirtualMachineSnapshot", {"source": VM, "failureDeadline": "soon"}, "spec.failureDeadline", "must be a duration"),
    (SNAPSHOT, "VirtualMachineSnapshot", {"source": VM, "overlayScratchSize": "1Gi"}, "spec.overlayScratchSize", "only with"),
    (SNAPSHOT, "VirtualMachineRestore", {**RESTORE, "target": SHOT}, "spec.target.kind", "Unsupported value"),
    (SNAPSHOT, "VirtualMachineRestore", {"target": VM}, "spec.virtualMachineSnapshotName", "Required value"),
    (SNAPSHOT, "VirtualMachineRestore", {**RESTORE, "targetReadinessPolicy": "Now"}, "spec.targetReadinessPolicy", "Unsupported"),
    (SNAPSHOT, "VirtualMachineRestore", {**RESTORE, "patches": ["{", '{"op": "add"}']}, "spec.patches[0]", "not JSON"),
    (SNAPSHOT, "VirtualMachineRestore", {**RESTORE, "patches": ["{", '{"op": "add"}']}, "spec.patches[1]", "JSON patch operation"),
    (
        SNAPSHOT,
        "VirtualMachineRestore",
        {**RESTORE, "patches": ['[{"op":"add","path":"/kind"}]']},
        "spec.patches[0]",
        "elements under /spec/",
    ),
    ("clone.kubevirt.io", "VirtualMachineClone", {"source": PVC}, "spec.source.kind", "Unsupported value"),
    ("clone.kubevirt.io", "VirtualMachineClone", {"source": VM, "target": VM}, "spec.target.name", "another name"),
    ("clone.kubevirt.io", "VirtualMachineClone", {"source": VM, "target": SHOT}, "spec.target.kind", "Unsupported value"),
    ("clone.kubevirt.io", "VirtualMachineClone", {"source": VM, "labelFilters": ["a", "b c"]}, "spec.labelFilters[1]", "must be a key"),
    (
        "clone.kubevirt.io",
        "VirtualMachineClone",
        {"source": VM, "template": {"annotationFilters": ["!!a"]}},
        "spec.template.annotationFilters[0]",
        "must be a key",
    ),
    ("clone.kubevirt.io", "VirtualMachineClone", {"source": VM, "newMacAddresses": {"a": "x"}}, "spec.newMacAddresses.a", "MAC"),
    ("clone.kubevirt.io", "VirtualMachineClone", {"source": VM, "patches": ["[1]"]}, "spec.patches[0]", "JSON patch operation"),
    ("export.kubevirt.io", "VirtualMachineExport", {"source": POD}, "spec.source.kind", "Unsupported value"),
    ("export.kubevirt.io", "VirtualMachineExport", {"source": {**PVC, "apiGroup": "v1"}}, "spec.source.apiGroup", "Unsupported"),
    (CDI, "DataImportCron", {**CRON, "schedule": "every night"}, "spec.schedule", "must be a cron expression"),
    (CDI, "DataImportCron", {**CRON, "importsToKeep": -1}, "spec.importsToKeep", "greater than or equal to 0"),
    (CDI, "DataImportCron", {**CRON, "garbageCollect": "Some"}, "spec.garbageCollect", "Unsupported value"),
    (CDI, "DataImportCron", {**CRON, "managedDataSource": "A_B"}, "spec.managedDataSource", "DNS-1123"),
    (CDI, "DataImportCron", _cron(source={"http": {"url": "https://a/b"}}), "spec.template.spec.source", "only a registry or a pvc"),
    (CDI, "DataImportCron", _cron(sourceRef={"kind": "DataSource", "name": "a"}), "spec.template.spec.sourceRef", "registry or a pvc"),
    (
        CDI,
        "DataImportCron",
        _cron(source={"registry": {"url": "docker://a/b@sha256:0"}}),
        "spec.template.spec.source.registry.url",
        "a digest never changes",
    ),
    (CDI, "DataImportCron", _cron(source={"registry": {"url": "a/b"}}), "spec.template.spec.source.registry.url", "the scheme must be"),
    (CDI, "ObjectTransfer", {**MOVE, "target": {}}, "spec.target", "give a new namespace or a new name"),
    (CDI, "ObjectTransfer", {**MOVE, "target": {"namespace": "a"}}, "spec.target", "the object is already there"),
    (CDI, "ObjectTransfer", {**MOVE, "source": {**MOVE["source"], "kind": "Pod"}}, "spec.source.kind", "Unsupported value"),
    (CDI, "VolumeImportSource", {"source": {}}, "spec.source", "exactly one source must be set"),
    (CDI, "VolumeImportSource", {"source": {"blank": {}, "http": {"url": "ftp://a"}}}, "spec.source.http.url", "the scheme must be"),
    (CDI, "VolumeCloneSource", {"source": POD}, "spec.source.kind", "Unsupported value"),
    (
        CDI,
        "StorageProfile",
        {"claimPropertySets": [{"accessModes": [], "volumeMode": "Block"}]},
        "spec.claimPropertySets[0].accessModes",
        "",
    ),
    (CDI, "CDIConfig", {"filesystemOverhead": {"global": "6%"}}, "spec.filesystemOverhead.global", "from 0 to 1"),
    (CDI, "CDIConfig", {"filesystemOverhead": {"storageClass": {"a": "2"}}}, "spec.filesystemOverhead.storageClass.a", "from 0 to 1"),
    (INSTANCETYPE, "VirtualMachineInstancetype", {**SMALL, "cpu": {}}, "spec.cpu.guest", "Required value"),
    (INSTANCETYPE, "VirtualMachineInstancetype", {**SMALL, "memory": {}}, "spec.memory.guest", "Required value"),
    (
        INSTANCETYPE,
        "VirtualMachineInstancetype",
        {**SMALL, "memory": {"guest": "1Gi", "overcommitPercent": 10, "hugepages": {"pageSize": "2Mi"}}},
        "spec.memory.overcommitPercent",
        "overcommitPercent and hugepages exclude each other",
    ),
    ("kubevirt.io", "VirtualMachineInstancePreset", {"selector": {}}, "spec.domain", "Required value"),
    (
        "kubevirt.io",
        "VirtualMachineInstancePreset",
        {"selector": {}, "domain": {"devices": {"disks": [{"name": "d", "disk": {}, "cdrom": {}}]}}},
        "spec.domain.devices.disks[0]",
        "single target type",
    ),
    (
        INSTANCETYPE,
        "VirtualMachineClusterInstancetype",
        {**SMALL, "memory": {"guest": "1Gi", "overcommitPercent": 101}},
        "spec.memory.overcommitPercent",
        "between 0 and 100",
    ),
    (
        INSTANCETYPE,
        "VirtualMachinePreference",
        {"cpu": {"preferredCPUTopology": "spread", "spreadOptions": {"across": "CoresThreads", "ratio": 3}}},
        "spec.cpu.spreadOptions.ratio",
        "only a ratio of 2",
    ),
    (
        INSTANCETYPE,
        "VirtualMachineClusterPreference",
        {"firmware": {"preferredEfi": {}, "preferredUseSecureBoot": True}},
        "spec.firmware.preferredUseSecureBoot",
        "preferredEfi is set too",
    ),
    (
        INSTANCETYPE,
        "VirtualMachinePreference",
        {"firmware": {"preferredEfi": {}, "preferredUseBios": True}},
        "spec.firmware.preferredUseBios",
        "EFI is preferred too",
    ),
    (
        "kubevirt.io",
        "VirtualMachineInstanceReplicaSet",
        {**REPLICAS, "selector": {"matchLabels": {"a": "c"}}},
        "spec.selector",
        "does not match template.metadata.labels",
    ),
    ("kubevirt.io", "VirtualMachineInstanceReplicaSet", {**REPLICAS, "selector": {}}, "spec.selector", "selector must not be empty"),
    ("upload.cdi.kubevirt.io", "UploadTokenRequest", {}, "spec.pvcName", "Required value"),
    ("migrations.kubevirt.io", "MigrationPolicy", {}, "spec.selectors", "Required value"),
    (
        "kubevirt.io",
        "KubeVirt",
        {"configuration": {"network": {"defaultNetworkInterface": "slirp"}}},
        "spec.configuration.network.defaultNetworkInterface",
        "Unsupported value",
    ),
)


@pytest.mark.parametrize(("group", "kind", "spec", "field", "words"), REFUSED)
def test_refused(group: str, kind: str, spec: dict[str, Any], field: str, words: str) -> None:
    found = errors(admitted(thing(group, kind, spec)))
    assert any(at == field and words in message for at, message in found), found


def test_sizes_of_nothing_are_taken() -> None:
    assert errors(admitted(thing(INSTANCETYPE, "VirtualMachineInstancetype", {"cpu": {"guest": 0}, "memory": {"guest": "0"}}))) == []
    needs = {"requirements": {"cpu": {"guest": 0}, "memory": {"guest": "0"}}}
    assert errors(admitted(thing(INSTANCETYPE, "VirtualMachinePreference", needs))) == []


def test_a_clone_needs_no_name_of_the_target() -> None:
    for target in (
        {"kind": "VirtualMachine", "apiGroup": "kubevirt.io"},
        {"kind": "VirtualMachine", "apiGroup": "kubevirt.io", "name": ""},
    ):
        source = {"kind": "VirtualMachine", "apiGroup": "kubevirt.io", "name": "a"}
        assert errors(admitted(thing("clone.kubevirt.io", "VirtualMachineClone", {"source": source, "target": target}))) == []


def test_the_kind_of_what_is_cloned_decides_and_not_its_group() -> None:
    source = {"kind": "VirtualMachineSnapshot", "apiGroup": "kubevirt.io", "name": "a"}
    assert errors(admitted(thing("clone.kubevirt.io", "VirtualMachineClone", {"source": source}))) == []
    del source["apiGroup"]
    ((field, _),) = errors(admitted(thing("clone.kubevirt.io", "VirtualMachineClone", {"source": source})))
    assert field == "spec.source.apiGroup"


@pytest.mark.parametrize(
    ("labels", "phase", "refused"),
    [
        (None, "", "removed from"),
        ({"a": "b"}, "Running", "modified on"),
        ({"kubevirt.io/vmi-name": "a", "a": "b"}, "", ""),
        (None, "Failed", ""),
    ],
)
def test_the_label_of_a_migration_under_way_stays(labels: dict[str, str] | None, phase: str, refused: str) -> None:
    old, new = (thing("kubevirt.io", "VirtualMachineInstanceMigration", {"vmiName": "a"}) for _ in range(2))
    old["metadata"]["labels"] = {"kubevirt.io/vmi-name": "a"}
    new["metadata"] |= {"labels": labels} if labels is not None else {}
    new["status"] = {"phase": phase} if phase else {}
    before = admitted(old).value
    assert before is not None
    told = errors(admit_change(before, admitted(new), AdmissionSettings()))
    assert told == ([("", f"selector label can't be {refused} an in-flight migration")] if refused else [])


def test_names_of_crons_fit_into_labels() -> None:
    assert [field for field, _ in errors(admitted(thing(CDI, "DataImportCron", CRON, name="x" * 64)))] == ["metadata.name"]
    assert admitted(thing(CDI, "DataImportCron", CRON, name="x" * 63)).findings == ()


@pytest.mark.parametrize("text", ["30 1 * * *", "*/5 0-6 1,15 JAN-MAR MON", "0 0 1 1 ? 2030", "@daily"])
def test_schedules(text: str) -> None:
    assert is_schedule(text)


@pytest.mark.parametrize("text", ["* * * *", "* * * * * * *", "@sometimes", "a;b * * * *", "1,,2 * * * *"])
def test_no_schedules(text: str) -> None:
    assert not is_schedule(text)


def test_only_one_configuration_counts() -> None:
    admission = admitted(thing(CDI, "CDIConfig", {}))
    assert [(found.field, found.severity) for found in admission.findings] == [("metadata.name", Severity.WARNING)]
    assert admitted(thing(CDI, "CDIConfig", {}, name="config")).findings == ()


def test_what_one_host_cannot_do_is_kept_and_named() -> None:
    policy = {"selectors": {}, "allowPostCopy": True, "experimental": {"compression": "zstd"}}
    admission = admitted(thing("migrations.kubevirt.io", "MigrationPolicy", policy))
    assert admission.data["spec"] == policy
    assert [(found.field, found.severity) for found in admission.findings] == [
        ("spec.allowPostCopy", Severity.NOTE),
        ("spec.experimental", Severity.NOTE),
    ]


def test_more_than_is_described_of_an_installation_is_kept() -> None:
    spec = {"configuration": {"developerConfiguration": {"logVerbosity": {"virtAPI": 5}}, "someNewThing": {"a": 1}}}
    admission = admitted(thing("kubevirt.io", "KubeVirt", spec))
    assert admission.accepted
    assert admission.data["spec"] == spec


@pytest.mark.parametrize(
    ("version", "kind", "warned"),
    [
        ("kubevirt.io/v1alpha3", "KubeVirt", True),
        ("export.kubevirt.io/v1beta1", "VirtualMachineExport", True),
        (f"{SNAPSHOT}/v1alpha1", "VirtualMachineSnapshot", False),
    ],
)
def test_old_versions(version: str, kind: str, warned: bool) -> None:
    raw = {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": {} if kind == "KubeVirt" else {"source": VM}}
    findings = admitted(raw).findings
    assert [(found.field, found.severity) for found in findings] == ([("apiVersion", Severity.WARNING)] if warned else [])


# group, kind, spec, and a change that is refused
SET_IN_STONE: tuple[tuple[str, str, dict[str, Any], dict[str, Any], str], ...] = (
    (SNAPSHOT, "VirtualMachineSnapshot", {"source": VM}, {"deletionPolicy": "Retain"}, "field is immutable"),
    (SNAPSHOT, "VirtualMachineRestore", RESTORE, {"virtualMachineSnapshotName": "other"}, "field is immutable"),
    ("clone.kubevirt.io", "VirtualMachineClone", {"source": VM}, {"newSMBiosSerial": "1"}, "field is immutable"),
    ("export.kubevirt.io", "VirtualMachineExport", {"source": VM}, {"ttlDuration": "1h"}, "field is immutable"),
    ("kubevirt.io", "VirtualMachineInstanceMigration", {"vmiName": "a"}, {"vmiName": "b"}, "field is immutable"),
    (CDI, "DataImportCron", CRON, {"schedule": "@daily"}, "Cannot update DataImportCron Spec"),
    (CDI, "DataVolume", {"source": {"blank": {}}, "storage": SIZE}, {"preallocation": True}, "Cannot update DataVolume Spec"),
    (CDI, "ObjectTransfer", MOVE, {"target": {"name": "y"}}, "field is immutable"),
    (CDI, "VolumeImportSource", {"source": {"blank": {}}}, {"preallocation": True}, "field is immutable"),
)


def change(group: str, kind: str, old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, str]]:
    before = admitted(thing(group, kind, old)).value
    assert before is not None
    return errors(admit_change(before, admitted(thing(group, kind, new)), AdmissionSettings()))


@pytest.mark.parametrize(("group", "kind", "spec", "changes", "words"), SET_IN_STONE)
def test_what_was_decided_stays(group: str, kind: str, spec: dict[str, Any], changes: dict[str, Any], words: str) -> None:
    assert change(group, kind, spec, {**spec, **changes}) == [("spec", f"Invalid value: {words}")]
    assert change(group, kind, spec, copy.deepcopy(spec)) == []


def test_other_words_for_the_same_are_no_change() -> None:
    old = {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}
    new = {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1024Mi"}}}}
    assert change(CDI, "DataVolume", old, new) == []


def test_selectors_stay_and_numbers_change() -> None:
    group, kind = "kubevirt.io", "VirtualMachineInstanceReplicaSet"
    labels = {"metadata": {"labels": {"a": "b", "c": "d"}}, "spec": {"domain": HARDWARE}}
    assert change(group, kind, REPLICAS, {**REPLICAS, "replicas": 5}) == []
    wider = {"selector": {"matchLabels": {"c": "d"}}, "template": labels}
    assert change(group, kind, REPLICAS, wider) == [("spec.selector", "Invalid value: field is immutable")]


def test_the_content_of_a_snapshot_is_filled_in_but_not_changed() -> None:
    kind = "VirtualMachineSnapshotContent"
    old = {"source": {"virtualMachine": {"metadata": {"name": "a"}}}}
    volumes = [{"volumeName": "root", "persistentVolumeClaim": {"spec": {}}}]
    assert change(SNAPSHOT, kind, old, {**old, "volumeBackups": volumes}) == []
    other = {"source": {"virtualMachine": {"metadata": {"name": "b"}}}}
    assert change(SNAPSHOT, kind, old, other) == [("spec.source", "Invalid value: field is immutable")]
