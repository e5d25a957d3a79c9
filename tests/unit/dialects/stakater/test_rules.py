"""The values of a Stakater machine: every refusal with its place and its words, and the accepted counterpart beside it."""

import base64
import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddock.dialects.stakater import rules
from paddock.kubernetes.admission import AdmissionResult, FieldValidation, admit, admit_change
from paddock.kubernetes.schema.finding import CauseType, Severity
from paddock.kubernetes.schema.kind import AdmissionSettings

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID3TomWVaH/e6dd61FMRtOGRxsYGn5cNQqxXhlHgqST2 emma@acme"
ENCODED_KEY = base64.b64encode(KEY.encode()).decode()
PRIVATE_KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n-----END OPENSSH PRIVATE KEY-----\n"
EXAMPLES = Path("src/paddock/dialects/stakater/examples")
POD = {"name": "a", "type": "pod"}
MULTUS = {"name": "b", "type": "multus", "multus": {"networkName": "nad"}}


def machine(parameters: dict[str, Any] | None = None, name: str = "web") -> dict[str, Any]:
    spec = {} if parameters is None else {"parameters": parameters}
    return {"apiVersion": "infrastructure.stakater.com/v1", "kind": "VirtualMachine", "metadata": {"name": name}, "spec": spec}


def admitted(parameters: dict[str, Any] | None = None, **settings: Any) -> AdmissionResult:
    return admit(machine(parameters), AdmissionSettings(**settings))


def errors(admission: AdmissionResult) -> list[tuple[str, str]]:
    return [(found.field, found.message) for found in admission.findings if found.severity is Severity.ERROR]


def warnings(admission: AdmissionResult) -> list[tuple[str, str]]:
    return [(found.field, found.message) for found in admission.findings if found.severity is Severity.WARNING]


def disk(**fields: Any) -> dict[str, Any]:
    return {"additionalDisks": [{"name": "data", "size": "1Gi", **fields}]}


def network(**fields: Any) -> dict[str, Any]:
    return {"networks": [{"name": "net", **fields}]}


REFUSED = (
    [
        pytest.param({"storage": {"size": size}}, "storage.size", words, id=f"size {size}", marks=pytest.mark.spec("stakater", 8))
        for size, words in (
            ("30GB!", "not a Kubernetes quantity"),
            ("500m", "must be a whole number of bytes"),
            ("0", "must be greater than 0"),
            ("-1Gi", "must be greater than 0"),
        )
    ]
    + [
        pytest.param(parameters, field, words, id=case, marks=pytest.mark.spec("stakater", *items))
        for case, items, parameters, field, words in (
            ("disk without name", (11,), {"additionalDisks": [{"size": "1Gi"}]}, "additionalDisks[0].name", "Required value"),
            ("disk without size", (12,), {"additionalDisks": [{"name": "a"}]}, "additionalDisks[0].size", "Required value"),
            (
                "disk twice",
                (13,),
                {"additionalDisks": [{"name": "a", "size": "1Gi"}, {"name": "a", "size": "1Gi"}]},
                "additionalDisks[1].name",
                'Duplicate value: "a"',
            ),
            ("disk rootdisk", (13,), disk(name="rootdisk"), "additionalDisks[0].name", "reserved disk name"),
            ("disk cloudinitdisk", (13,), disk(name="cloudinitdisk"), "additionalDisks[0].name", "reserved disk name"),
            ("no access mode", (16,), disk(accessModes=[]), "additionalDisks[0].accessModes", "must have at least 1 item"),
            (
                "foreign access mode",
                (16,),
                disk(accessModes=["Foo"]),
                "additionalDisks[0].accessModes[0]",
                'supported values: "ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany", "ReadWriteOncePod"',
            ),
            (
                "http without source",
                (17,),
                disk(sourceType="http"),
                "additionalDisks[0].source.http",
                'Required value: sourceType "http" needs a location',
            ),
            (
                "http without url",
                (17,),
                disk(sourceType="http", source={"http": {}}),
                "additionalDisks[0].source.http.url",
                "Required value",
            ),
            ("pvc without source", (18,), disk(sourceType="pvc"), "additionalDisks[0].source.pvc", 'sourceType "pvc" needs a location'),
            (
                "registry with another source",
                (18,),
                disk(sourceType="registry", source={"pvc": {"name": "x"}}),
                "additionalDisks[0].source.registry",
                'sourceType "registry" needs a location',
            ),
            ("blank with source", (18,), disk(source={"pvc": {"name": "x"}}), "additionalDisks[0].source", "Forbidden"),
            ("bus ide", (19,), disk(bus="ide"), "additionalDisks[0].bus", "use sata"),
            (
                "multus without name",
                (20,),
                network(type="multus"),
                "networks[0].multus.networkName",
                "Required value: a multus network needs the name of its NetworkAttachmentDefinition",
            ),
            (
                "pod with multus",
                (22,),
                network(type="pod", multus={"networkName": "x"}),
                "networks[0].multus",
                "Forbidden: only for multus networks",
            ),
            ("two pod networks", (23,), {"networks": [POD, {"name": "c"}]}, "networks[1]", "at most one pod network"),
            (
                "masquerade on multus",
                (25,),
                {"networks": [MULTUS | {"bindingName": "masquerade"}]},
                "networks[0].bindingName",
                "masquerade works only on the pod network",
            ),
            (
                "sriov on pod",
                (25,),
                {"networks": [POD | {"bindingName": "sriov"}]},
                "networks[0].bindingName",
                "sriov needs a multus network",
            ),
            ("unknown model", (27,), network(interfaceModel="foo"), "networks[0].interfaceModel", 'Unsupported value: "foo"'),
            (
                "secure boot without efi",
                (29,),
                {"firmware": {"efi": False, "secureBoot": True}},
                "firmware.secureBoot",
                "Secure Boot needs EFI (firmware.efi) and SMM",
            ),
            (
                "cloud-config that is a list",
                (37,),
                {"cloudInit": {"userData": "#cloud-config\n- a\n- b\n"}},
                "cloudInit.userData",
                "not valid cloud-config: line 2:",
            ),
            (
                "placeholder key",
                (6,),
                {"sshPublicKey": {"data": "<base64-encoded-ssh-public-key>"}},
                "sshPublicKey.data",
                "not an OpenSSH public key, raw or base64",
            ),
            ("private key", (40,), {"sshPublicKey": {"data": PRIVATE_KEY}}, "sshPublicKey.data", "this looks like a private key"),
            (
                "key and secret",
                (41,),
                {"sshPublicKey": {"data": KEY, "secretName": "keys"}},
                "sshPublicKey",
                "data and secretName are mutually exclusive",
            ),
            ("run strategy Once", (45,), {"runStrategy": "Once"}, "runStrategy", 'Unsupported value: "Once"'),
            ("port 0", (49,), {"service": {"port": 0}}, "service.port", "must be between 1 and 65535, inclusive"),
            ("port 70000", (49,), {"service": {"targetPort": 70000}}, "service.targetPort", "must be between 1 and 65535, inclusive"),
            (
                "managed label",
                (51,),
                {"additionalLabels": {rules.MACHINE_LABEL: "x"}},
                f"additionalLabels[{rules.MACHINE_LABEL}]",
                "Forbidden: managed by the controller",
            ),
        )
    ]
    + [
        pytest.param(parameters, field, words, id=case)
        for case, parameters, field, words in (
            ("too many vcpus", {"cpu": {"cores": 64, "sockets": 64}}, "cpu", "4096 vCPUs exceeds the limit 512"),
            ("no memory", {"memory": {"guest": "512Ki"}}, "memory.guest", "must be at least 1Mi"),
            (
                "blank and read-only",
                disk(accessModes=["ReadOnlyMany"]),
                "additionalDisks[0].accessModes",
                "a blank disk cannot be read-only",
            ),
            ("access mode twice", disk(accessModes=["ReadWriteOnce"] * 2), "additionalDisks[0].accessModes[1]", "Duplicate value"),
            ("network twice", {"networks": [POD, MULTUS | {"name": "a"}]}, "networks[1].name", 'Duplicate value: "a"'),
            (
                "unknown network type",
                network(type="bridge"),
                "networks[0].type",
                'Unsupported value: "bridge": supported values: "pod", "multus"',
            ),
            ("user name", {"cloudInit": {"user": "Root!"}}, "cloudInit.user", "not a Linux user name"),
            ("empty password", {"cloudInit": {"password": ""}}, "cloudInit.password", "must not be empty"),
            ("two-line password", {"cloudInit": {"password": "a\nb"}}, "cloudInit.password", "must be one line"),
            ("boolean as text", {"cloudInit": {"passwordExpire": "yes"}}, "cloudInit.passwordExpire", "must be a boolean"),
            (
                "negative grace",
                {"terminationGracePeriodSeconds": -1},
                "terminationGracePeriodSeconds",
                "must be greater than or equal to 0",
            ),
            (
                "ftp source",
                disk(sourceType="http", source={"http": {"url": "ftp://x/y"}}),
                "additionalDisks[0].source.http.url",
                "http or https",
            ),
            ("selector value", {"nodeSelector": {"zone": "a b"}}, "nodeSelector.zone", "must be a label value"),
            (
                "bare key blob",
                {"sshPublicKey": {"data": KEY.split()[1]}},
                "sshPublicKey.data",
                "put the type in front of the key",
            ),
            (
                "key of another type",
                {"sshPublicKey": {"data": KEY.replace("ssh-ed25519", "ssh-rsa")}},
                "sshPublicKey.data",
                "the key is not of the type ssh-rsa",
            ),
            (
                "key that ends after its type",
                {"sshPublicKey": {"data": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5"}},
                "sshPublicKey.data",
                "the key is cut off or damaged; copy the whole line",
            ),
            (
                "key that is cut in its middle",
                {"sshPublicKey": {"data": " ".join((KEY.split()[0], KEY.split()[1][:40]))}},
                "sshPublicKey.data",
                "the key is cut off or damaged",
            ),
            (
                "large annotations",
                {"additionalAnnotations": {"a": "x" * (256 * 1024)}},
                "additionalAnnotations",
                "Too long: may not be more than 262144 bytes",
            ),
        )
    ]
)


@pytest.mark.parametrize(("parameters", "field", "words"), REFUSED)
def test_refused_at_its_place(parameters: dict[str, Any], field: str, words: str) -> None:
    found = errors(admitted(parameters))
    assert [place for place, _ in found].count(f"spec.parameters.{field}") == 1, found
    assert words in dict(found)[f"spec.parameters.{field}"]


ACCEPTED = [
    pytest.param(parameters, id=case, marks=pytest.mark.spec("stakater", *items))
    for case, items, parameters in (
        ("decimal size", (8,), {"storage": {"size": "30G"}}),
        ("fractional size", (8,), {"storage": {"size": "1.5Gi"}}),
        ("plain bytes", (8,), {"storage": {"size": "32212254720"}}),
        ("bus sata", (19,), disk(bus="sata")),
        ("bus scsi", (19,), disk(bus="scsi")),
        ("bus usb", (19,), disk(bus="usb")),
        ("multus inferred", (21,), network(multus={"networkName": "space/nad"}, bindingName="sriov")),
        ("model e1000e", (27,), network(interfaceModel="e1000e")),
        ("bios", (28,), {"firmware": {"efi": False}}),
        (
            "base64 with line breaks",
            (39,),
            {"sshPublicKey": {"data": "\n".join(ENCODED_KEY[i : i + 20] for i in range(0, len(ENCODED_KEY), 20))}},
        ),
        ("empty selector value", (50,), {"nodeSelector": {"node-role.kubernetes.io/worker": ""}}),
    )
]


@pytest.mark.parametrize("parameters", ACCEPTED)
def test_accepted_counterparts(parameters: dict[str, Any]) -> None:
    assert errors(admitted(parameters)) == []


@pytest.mark.spec("stakater", 1, 2, 3, 14)
def test_defaults_are_written_into_the_object() -> None:
    admission = admitted(None)
    assert admission.accepted
    parameters = admission.data["spec"]["parameters"]
    assert parameters == {
        "dataSource": {"name": "rhel9", "namespace": "openshift-virtualization-os-images"},
        "storage": {"size": "30Gi"},
        "additionalDisks": [],
        "cpu": {"cores": 1, "sockets": 1, "threads": 1},
        "memory": {"guest": "2Gi"},
        "cloudInit": {"user": "cloud-user", "passwordExpire": False},
        "sshPublicKey": {"propagationMethod": "noCloud"},
        "runStrategy": "RerunOnFailure",
        "terminationGracePeriodSeconds": 180,
        "enableDynamicCredentials": False,
        "firmware": {"efi": True},
        "service": {"enabled": False, "port": 22000, "targetPort": 22},
        "nodeSelector": {},
        "additionalLabels": {},
        "additionalAnnotations": {},
    }
    assert admitted(disk()).data["spec"]["parameters"]["additionalDisks"] == [
        {"name": "data", "size": "1Gi", "accessModes": ["ReadWriteMany"], "volumeMode": "Block", "bus": "virtio", "sourceType": "blank"}
    ]


@pytest.mark.spec("stakater", 9)
def test_all_failures_come_in_one_answer() -> None:
    wrong = {"storage": {"size": "x"}, "cpu": {"cores": 0}, "runStrategy": "Sometimes"}
    admission = admitted(wrong)
    assert [place for place, _ in errors(admission)] == [
        "spec.parameters.storage.size",
        "spec.parameters.cpu.cores",
        "spec.parameters.runStrategy",
    ]
    assert {found.cause for found in admission.findings if found.severity is Severity.ERROR} == {CauseType.INVALID, CauseType.NOT_SUPPORTED}


@pytest.mark.spec("stakater", 10)
def test_unknown_fields_by_field_validation() -> None:
    raw = machine({"foo": 1, "cpus": {}})
    strict = admit(raw, AdmissionSettings())
    assert ("spec.parameters.foo", 'unknown field "spec.parameters.foo"') in errors(strict)
    assert ("spec.parameters.cpus", 'unknown field "spec.parameters.cpus"; did you mean "cpu"?') in errors(strict)
    warned = admit(raw, AdmissionSettings(), FieldValidation.WARN)
    assert warned.accepted
    assert ("spec.parameters.foo", 'unknown field "spec.parameters.foo"') in warnings(warned)
    ignored = admit(raw, AdmissionSettings(), FieldValidation.IGNORE)
    assert ignored.accepted
    assert not [found for found in ignored.findings if "foo" in found.message]
    assert "foo" not in ignored.data["spec"]["parameters"]


@pytest.mark.parametrize("secret", [PRIVATE_KEY, "<base64-encoded-ssh-public-key>", "AAAA not a key"])
@pytest.mark.spec("stakater", 40)
def test_key_material_is_never_repeated(secret: str) -> None:
    said = " ".join(found.message for found in admitted({"sshPublicKey": {"data": secret}}).findings)
    assert not any(word in said for word in secret.split() if len(word) > 8)


def test_passwords_are_never_repeated() -> None:
    for password in ("hunter2\nhunter3", ["hunter2"]):
        said = " ".join(found.message for found in admitted({"cloudInit": {"password": password}}).findings)
        assert "must be" in said
        assert "hunter" not in said


@pytest.mark.spec("stakater", 35)
def test_own_user_data_replaces_user_and_password() -> None:
    found = warnings(admitted({"cloudInit": {"userData": "#cloud-config\n{}\n", "password": "x"}}))
    assert ("spec.parameters.cloudInit.userData", "user/password are ignored because userData is set") in found


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"memory": {"guest": "128Mi"}}, "may be too little for EFI firmware"),
        ({}, "no password and no SSH key: only the image's own credentials will work"),
        ({"cloudInit": {"userData": "hello"}}, "no header that cloud-init knows"),
        ({"sshPublicKey": {"secretName": "k", "propagationMethod": "qemuGuestAgent"}}, "virt_qemu_ga_manage_ssh"),
    ],
)
def test_warnings(parameters: dict[str, Any], words: str) -> None:
    admission = admitted(parameters)
    assert admission.accepted
    assert any(words in message for _, message in warnings(admission))


def test_secure_boot_on_arm64() -> None:
    explicit = admitted({"firmware": {"secureBoot": True}}, architecture="arm64")
    assert ("spec.parameters.firmware.secureBoot", "Invalid value: true: not supported on arm64") in errors(explicit)
    assert admitted({}, architecture="arm64").accepted


def test_the_name_becomes_a_label() -> None:
    too_long = admit(machine(name="x" * 64), AdmissionSettings())
    assert [place for place, _ in errors(too_long)] == ["metadata.name"]
    assert "must be no more than 63 characters" in errors(too_long)[0][1]
    assert "must be a DNS-1123 label" in errors(admit(machine(name="a.b"), AdmissionSettings()))[0][1]
    assert admit(machine(name="x" * 63), AdmissionSettings()).accepted


def test_crossplane_keys_are_kept_and_named() -> None:
    raw = machine()
    raw["spec"]["compositionRef"] = {"name": "vm"}
    admission = admit(raw, AdmissionSettings())
    assert admission.accepted
    assert admission.data["spec"]["compositionRef"] == {"name": "vm"}
    notes = [found for found in admission.findings if found.severity is Severity.NOTE]
    assert [found.field for found in notes] == ["spec.compositionRef"]
    assert "not honoured" in notes[0].message


CREATED = {"vm": {"printableStatus": "Running"}}


def changed(old: dict[str, Any], new: dict[str, Any], status: dict[str, Any] | None) -> list[tuple[str, str]]:
    before = machine(old)
    if status is not None:
        before["status"] = status
    value = admit(before, AdmissionSettings()).value
    assert value is not None
    return errors(admit_change(value, admit(machine(new), AdmissionSettings()), AdmissionSettings()))


@pytest.mark.spec("stakater", 61)
def test_the_image_is_immutable_once_the_machine_exists() -> None:
    new = {"dataSource": {"name": "fedora"}}
    assert changed({}, new, CREATED) == [("spec.parameters.dataSource.name", 'Invalid value: "fedora": field is immutable')]
    assert changed({}, new, None) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("storageClassName", "fast"),
        ("accessModes", ["ReadWriteOnce"]),
        ("volumeMode", "Filesystem"),
        ("source", {"http": {"url": "https://b.example.com/x"}}),
        ("sourceType", "blank"),
    ],
)
def test_what_a_disk_is_made_of_is_immutable(field: str, value: Any) -> None:
    old = disk(sourceType="http", source={"http": {"url": "https://a.example.com/x"}})
    new = copy.deepcopy(old)
    new["additionalDisks"][0][field] = value
    assert (f"spec.parameters.additionalDisks[0].{field}", "Invalid value: field is immutable") in changed(old, new, CREATED)


def test_disks_grow_and_never_shrink() -> None:
    assert changed({"storage": {"size": "30Gi"}}, {"storage": {"size": "31Gi"}}, CREATED) == []
    assert changed({"storage": {"size": "30Gi"}}, {"storage": {"size": "30720Mi"}}, CREATED) == []
    assert changed({"storage": {"size": "30Gi"}}, {"storage": {"size": "29Gi"}}, CREATED) == [
        ("spec.parameters.storage.size", "Forbidden: disks cannot shrink")
    ]
    assert changed(disk(size="2Gi"), disk(size="1Gi"), CREATED) == [
        ("spec.parameters.additionalDisks[0].size", "Forbidden: disks cannot shrink")
    ]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_examples_are_good(path: Path) -> None:
    for document in yaml.safe_load_all(path.read_text()):
        assert errors(admit(document, AdmissionSettings())) == []


def test_every_rule_has_an_id_of_its_own_and_a_text() -> None:
    ids = [each.id for each in (*rules.RULES, *rules.TRANSITIONS)]
    assert len(set(ids)) == len(ids)
    assert all(each.id.startswith("stakater/") and each.text for each in (*rules.RULES, *rules.TRANSITIONS))


def test_no_rule_is_without_a_case() -> None:
    cases = [entry.values[0] for entry in REFUSED] + [{"memory": {"guest": "128Mi"}}]
    told = {found.rule for case in cases for found in admitted(dict(case)).findings}  # type: ignore[call-overload]
    told |= {found.rule for found in admit(machine(name="x" * 64), AdmissionSettings()).findings}
    assert {each.id for each in rules.RULES} <= told
