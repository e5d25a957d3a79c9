"""A Stakater machine becomes KubeVirt objects: the worked examples to the letter, and every row of the mapping."""

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddock.dialects.stakater.kinds.virtualmachine import StakaterVirtualMachine
from paddock.dialects.stakater.translate import to_kubevirt
from paddock.kubernetes.admission import admit
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.translated import Translated
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema.kind import AdmissionSettings

HERE = Path(__file__).parent
EXAMPLES = Path("src/paddock/dialects/stakater/examples")
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID3TomWVaH/e6dd61FMRtOGRxsYGn5cNQqxXhlHgqST2 emma@acme"
OWNER = {"apiVersion": "infrastructure.stakater.com/v1", "kind": "VirtualMachine", "name": "web", "uid": "u-1"}
LABELS = {"app.kubernetes.io/managed-by": "paddock", "infrastructure.stakater.com/virtual-machine": "web"}


def front(parameters: dict[str, Any] | None = None, *, name: str = "web", uid: str | None = "u-1", **spec: Any) -> StakaterVirtualMachine:
    metadata = {"name": name, "namespace": "default"} | ({"uid": uid} if uid else {})
    raw = {"apiVersion": OWNER["apiVersion"], "kind": "VirtualMachine", "metadata": metadata, "spec": spec}
    if parameters is not None:
        raw["spec"] = spec | {"parameters": parameters}
    admission = admit(raw, AdmissionSettings())
    assert admission.accepted, admission.findings
    assert isinstance(admission.value, StakaterVirtualMachine)
    return admission.value


def translated(parameters: dict[str, Any] | None = None, rendering: Rendering = Rendering(), **given: Any) -> Translated[Any]:  # noqa: B008 - frozen
    return to_kubevirt(front(parameters, **given), ObjectSet(), rendering)


def objects(parameters: dict[str, Any] | None = None, **given: Any) -> dict[str, dict[str, Any]]:
    """Return the objects of a machine, by kind and name."""
    made = [to_data(each) for each in translated(parameters, **given).value]
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in made}


def machine(parameters: dict[str, Any] | None = None, **given: Any) -> dict[str, Any]:
    return objects(parameters, **given)["VirtualMachine/web"]


def instance(parameters: dict[str, Any] | None = None, **given: Any) -> dict[str, Any]:
    found: dict[str, Any] = machine(parameters, **given)["spec"]["template"]["spec"]
    return found


def disk(**fields: Any) -> dict[str, Any]:
    return {"additionalDisks": [{"name": "data", "size": "1Gi", **fields}]}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("minimal", marks=pytest.mark.spec("stakater", 4, 53)),
        pytest.param("full", marks=pytest.mark.spec("stakater", 5, 53)),
    ],
)
def test_worked_examples(name: str) -> None:
    raw = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())
    raw["metadata"] |= {"namespace": "default", "uid": "<uid>"}
    value = admit(raw, AdmissionSettings()).value
    assert isinstance(value, StakaterVirtualMachine)
    made = to_kubevirt(value, ObjectSet(), Rendering(product="vm-control-plane"))
    assert [to_data(each) for each in made.value] == list(yaml.safe_load_all((HERE / f"{name}.golden.yaml").read_text()))
    assert made.losses == ()


@pytest.mark.spec("stakater", 1, 2, 3, 31)
def test_nothing_given_means_the_defaults() -> None:
    made = machine(None)
    assert made["spec"]["runStrategy"] == "RerunOnFailure"
    (root,) = made["spec"]["dataVolumeTemplates"]
    assert root["spec"] == {
        "sourceRef": {"kind": "DataSource", "name": "rhel9", "namespace": "openshift-virtualization-os-images"},
        "storage": {"resources": {"requests": {"storage": "30Gi"}}},
    }
    assert made["spec"]["template"]["spec"] == {
        "terminationGracePeriodSeconds": 180,
        "domain": {
            "cpu": {"cores": 1, "sockets": 1, "threads": 1},
            "memory": {"guest": "2Gi"},
            "features": {"acpi": {}, "smm": {"enabled": True}},
            "firmware": {"bootloader": {"efi": {"secureBoot": True}}},
            "devices": {
                "rng": {},
                "disks": [{"name": "rootdisk", "disk": {"bus": "virtio"}}, {"name": "cloudinitdisk", "disk": {"bus": "virtio"}}],
                "interfaces": [{"name": "default", "model": "virtio", "binding": {"name": "l2bridge"}}],
            },
        },
        "networks": [{"name": "default", "pod": {}}],
        "volumes": [
            {"name": "rootdisk", "dataVolume": {"name": "web-rootdisk"}},
            {"name": "cloudinitdisk", "cloudInitNoCloud": {"userData": "#cloud-config\nuser: cloud-user\n"}},
        ],
    }


@pytest.mark.spec("stakater", 7)
def test_the_same_input_gives_the_same_bytes() -> None:
    parameters = disk() | {"sshPublicKey": {"data": KEY}, "cloudInit": {"password": "x"}, "service": {"enabled": True}}
    once, again = (yaml.safe_dump(list(objects(parameters).values())) for _ in range(2))
    assert once == again


@pytest.mark.spec("stakater", 14, 15)
def test_disks_and_their_class() -> None:
    def storage(parameters: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = machine(parameters)["spec"]["dataVolumeTemplates"][1]["spec"]
        return found

    plain = storage(disk())
    assert plain["source"] == {"blank": {}}
    assert plain["storage"] == {"accessModes": ["ReadWriteMany"], "volumeMode": "Block", "resources": {"requests": {"storage": "1Gi"}}}
    assert storage(disk() | {"storage": {"storageClassName": "slow"}})["storage"]["storageClassName"] == "slow"
    assert storage(disk(storageClassName="fast") | {"storage": {"storageClassName": "slow"}})["storage"]["storageClassName"] == "fast"
    assert storage(disk(storageClassName="") | {"storage": {"storageClassName": ""}})["storage"].get("storageClassName") is None


@pytest.mark.parametrize(
    ("kind", "given", "made"),
    [
        pytest.param("http", {"url": "https://e.org/a"}, {"url": "https://e.org/a"}, marks=pytest.mark.spec("stakater", 17)),
        ("http", {"url": "http://e.org/a", "secretRef": "s", "certConfigMap": "c"}, None),
        ("http", {"url": "http://e.org/a", "checksum": "md5:" + "0" * 32}, None),
        pytest.param("pvc", {"name": "a"}, {"name": "a", "namespace": "default"}, marks=pytest.mark.spec("stakater", 18)),
        ("pvc", {"name": "a", "namespace": "b"}, None),
        pytest.param(
            "registry", {"url": "docker://e.org/a", "secretRef": "s", "certConfigMap": "c"}, None, marks=pytest.mark.spec("stakater", 18)
        ),
    ],
)
def test_sources_copy_through(kind: str, given: dict[str, Any], made: dict[str, Any] | None) -> None:
    parameters = disk(sourceType=kind, source={kind: given})
    assert machine(parameters)["spec"]["dataVolumeTemplates"][1]["spec"]["source"] == {kind: made or given}


@pytest.mark.parametrize("bus", ["sata", "scsi", "usb"])
@pytest.mark.spec("stakater", 19)
def test_buses_pass_through(bus: str) -> None:
    assert instance(disk(bus=bus))["domain"]["devices"]["disks"][1] == {"name": "data", "disk": {"bus": bus}}


@pytest.mark.parametrize(
    ("network", "interface", "attachment"),
    [
        pytest.param(
            {"multus": {"networkName": "space/nad"}, "bindingName": "bridge"},
            {"bridge": {}},
            {"multus": {"networkName": "space/nad"}},
            marks=pytest.mark.spec("stakater", 21),
        ),
        pytest.param({"bindingName": "masquerade"}, {"masquerade": {}}, {"pod": {}}, marks=pytest.mark.spec("stakater", 24)),
        pytest.param({}, {"binding": {"name": "l2bridge"}}, {"pod": {}}, marks=pytest.mark.spec("stakater", 24)),
        pytest.param(
            {"multus": {"networkName": "n"}, "bindingName": "sriov"},
            {"sriov": {}},
            {"multus": {"networkName": "n"}},
            marks=pytest.mark.spec("stakater", 24),
        ),
        ({"bindingName": "managedtap"}, {"binding": {"name": "managedtap"}}, {"pod": {}}),
    ],
)
def test_networks_and_bindings(network: dict[str, Any], interface: dict[str, Any], attachment: dict[str, Any]) -> None:
    made = instance({"networks": [{"name": "net", "interfaceModel": "e1000e", **network}]})
    assert made["domain"]["devices"]["interfaces"] == [{"name": "net", "model": "e1000e", **interface}]
    assert made["networks"] == [{"name": "net", **attachment}]


@pytest.mark.spec("stakater", 26)
def test_no_networks_means_no_card() -> None:
    none = instance({"networks": []})
    assert none["domain"]["devices"]["autoattachPodInterface"] is False
    assert "interfaces" not in none["domain"]["devices"]
    assert "networks" not in none
    omitted = instance({})
    assert "autoattachPodInterface" not in omitted["domain"]["devices"]
    assert [each["binding"] for each in omitted["domain"]["devices"]["interfaces"]] == [{"name": "l2bridge"}]


@pytest.mark.parametrize(
    ("firmware", "bootloader", "smm"),
    [
        pytest.param({"efi": False}, {"bios": {}}, False, marks=pytest.mark.spec("stakater", 28)),
        pytest.param({"secureBoot": False}, {"efi": {"secureBoot": False}}, False, marks=pytest.mark.spec("stakater", 30)),
        pytest.param({}, {"efi": {"secureBoot": True}}, True, marks=pytest.mark.spec("stakater", 31)),
    ],
)
def test_firmware(firmware: dict[str, Any], bootloader: dict[str, Any], smm: bool) -> None:
    domain = instance({"firmware": firmware})["domain"]
    assert domain["firmware"] == {"bootloader": bootloader}
    assert domain["features"] == {"acpi": {}} | ({"smm": {"enabled": True}} if smm else {})


def test_arm64_has_no_secure_boot() -> None:
    domain = instance({}, rendering=Rendering(architecture="arm64"))["domain"]
    assert domain["firmware"] == {"bootloader": {"efi": {"secureBoot": False}}}
    assert domain["features"] == {"acpi": {}}


@pytest.mark.spec("stakater", 32, 33, 34)
def test_a_password_is_kept_in_a_secret() -> None:
    password = "a: #\"' \\ %{} &x *y !z | > - ? ,[]@`"
    made = objects({"cloudInit": {"user": "op", "password": password, "passwordExpire": True}})
    secret = made["Secret/web-cloudinit"]
    assert yaml.safe_load(secret["stringData"]["userdata"]) == {"user": "op", "password": password, "chpasswd": {"expire": True}}
    assert secret["stringData"]["userdata"].startswith("#cloud-config\n")
    volume = made["VirtualMachine/web"]["spec"]["template"]["spec"]["volumes"][-1]
    assert volume == {"name": "cloudinitdisk", "cloudInitNoCloud": {"secretRef": {"name": "web-cloudinit"}}}
    assert password not in yaml.safe_dump(made["VirtualMachine/web"], width=10**6)


def test_a_password_does_not_expire_unless_asked_for() -> None:
    secret = objects({"cloudInit": {"password": "x"}})["Secret/web-cloudinit"]
    assert yaml.safe_load(secret["stringData"]["userdata"])["chpasswd"] == {"expire": False}


@pytest.mark.spec("stakater", 35)
def test_own_user_data_is_verbatim_and_alone() -> None:
    document = "#cloud-config\npackages: [git]   # mine\n"
    made = translated({"cloudInit": {"userData": document, "user": "op", "password": "sesame", "passwordExpire": True}})
    (vm,) = made.value
    assert vm.spec.template.spec.volumes[-1].cloudInitNoCloud.userData == document
    assert "sesame" not in str(to_data(vm))
    assert [loss.field for loss in made.losses] == [f"spec.parameters.cloudInit.{name}" for name in ("user", "password", "passwordExpire")]
    assert "sesame" not in str(made.losses)


@pytest.mark.spec("stakater", 36)
def test_long_user_data_goes_into_a_secret() -> None:
    for length, kept_in in ((2048, "userData"), (2049, "secretRef")):
        document = "#cloud-config\n".ljust(length, "#")
        volume = instance({"cloudInit": {"userData": document}})["volumes"][-1]
        assert list(volume["cloudInitNoCloud"]) == [kept_in]
    assert objects({"cloudInit": {"userData": "#" * 2049}})["Secret/web-cloudinit"]["stringData"] == {"userdata": "#" * 2049}
    # Bytes count, not characters.
    assert "secretRef" in instance({"cloudInit": {"userData": "#" + "\u00e4" * 1024}})["volumes"][-1]["cloudInitNoCloud"]


@pytest.mark.spec("stakater", 38, 39)
def test_raw_and_encoded_keys_are_one() -> None:
    encoded = base64.encodebytes(KEY.encode()).decode()
    raw, coded = (objects({"sshPublicKey": {"data": data}})["Secret/web-ssh-key"] for data in (KEY, encoded))
    assert raw == coded
    assert raw["stringData"] == {"key": KEY}
    two = objects({"sshPublicKey": {"data": f"# mine\n{KEY}\n\n{KEY}\n"}})["Secret/web-ssh-key"]
    assert two["stringData"] == {"key": KEY, "key-1": KEY}


@pytest.mark.spec("stakater", 42)
def test_an_existing_secret_is_pointed_at() -> None:
    made = objects({"sshPublicKey": {"secretName": "keys"}})
    assert list(made) == ["VirtualMachine/web"]
    (credential,) = made["VirtualMachine/web"]["spec"]["template"]["spec"]["accessCredentials"]
    assert credential["sshPublicKey"]["source"] == {"secret": {"secretName": "keys"}}
    assert "accessCredentials" not in instance({})


@pytest.mark.parametrize(
    ("method", "user", "carrier", "made"),
    [
        ("noCloud", None, "cloudInitNoCloud", {"noCloud": {}}),
        ("configDrive", None, "cloudInitConfigDrive", {"configDrive": {}}),
        ("qemuGuestAgent", None, "cloudInitNoCloud", {"qemuGuestAgent": {"users": ["cloud-user"]}}),
        ("qemuGuestAgent", "op", "cloudInitNoCloud", {"qemuGuestAgent": {"users": ["op"]}}),
    ],
)
@pytest.mark.spec("stakater", 43)
def test_key_propagation(method: str, user: str | None, carrier: str, made: dict[str, Any]) -> None:
    cloud_init = {"cloudInit": {"user": user}} if user else {}
    found = instance({"sshPublicKey": {"data": KEY, "propagationMethod": method}} | cloud_init)
    assert found["accessCredentials"][0]["sshPublicKey"]["propagationMethod"] == made
    assert carrier in found["volumes"][-1]


@pytest.mark.spec("stakater", 44)
def test_dynamic_credentials() -> None:
    made = objects({"enableDynamicCredentials": True})["VirtualMachine/web"]
    assert made["metadata"]["labels"]["kubevirt.io/dynamic-credentials-support"] == "true"
    document = made["spec"]["template"]["spec"]["volumes"][-1]["cloudInitNoCloud"]["userData"]
    (command,) = yaml.safe_load(document)["runcmd"]
    assert "setsebool -P virt_qemu_ga_manage_ssh on" in command[-1]
    assert command[-1].endswith("exit 0")
    assert "kubevirt.io/dynamic-credentials-support" not in machine({})["metadata"]["labels"]


@pytest.mark.parametrize("strategy", ["Always", "RerunOnFailure", "Manual", "Halted"])
@pytest.mark.spec("stakater", 46)
def test_run_strategy_and_never_running(strategy: str) -> None:
    spec = machine({"runStrategy": strategy})["spec"]
    assert spec["runStrategy"] == strategy
    assert "running" not in spec


@pytest.mark.spec("stakater", 47)
def test_the_service() -> None:
    assert not [name for name in objects({}) if name.startswith("Service/")]
    service = objects({"service": {"enabled": True}})["Service/web-lb"]
    assert service["spec"] == {
        "type": "LoadBalancer",
        "selector": {"infrastructure.stakater.com/virtual-machine": "web"},
        "ports": [{"name": "access", "protocol": "TCP", "port": 22000, "targetPort": 22}],
    }
    launcher = instance_labels({"service": {"enabled": True}})
    assert service["spec"]["selector"].items() <= launcher.items()
    chosen = objects({"service": {"enabled": True, "port": 80, "targetPort": 8080}})["Service/web-lb"]["spec"]["ports"][0]
    assert (chosen["port"], chosen["targetPort"]) == (80, 8080)


def instance_labels(parameters: dict[str, Any]) -> dict[str, str]:
    labels: dict[str, str] = machine(parameters)["spec"]["template"]["metadata"]["labels"]
    return labels


@pytest.mark.parametrize(("name", "service"), [("web", "web-lb"), ("9web", "vm-9web-lb")])
def test_names_of_services_are_dns_labels(name: str, service: str) -> None:
    assert f"Service/{service}" in objects({"service": {"enabled": True}}, name=name)


def test_long_names_of_services_stay_apart() -> None:
    first, second = (
        next(each for each in objects({"service": {"enabled": True}}, name=name) if each.startswith("Service/"))
        for name in ("x" * 62 + "a", "x" * 62 + "b")
    )
    assert first != second
    assert max(len(first), len(second)) <= len("Service/") + 63


@pytest.mark.spec("stakater", 50)
def test_node_selector_with_an_empty_value() -> None:
    selector = {"node-role.kubernetes.io/worker": ""}
    assert instance({"nodeSelector": selector})["nodeSelector"] == selector


@pytest.mark.spec("stakater", 51)
def test_labels_and_annotations_are_put_on_the_machine_only() -> None:
    made = machine(disk() | {"additionalLabels": {"team": "a"}, "additionalAnnotations": {"note": "b"}})
    assert made["metadata"]["labels"] == LABELS | {"team": "a"}
    assert made["metadata"]["annotations"] == {"note": "b"}
    assert made["spec"]["template"]["metadata"] == {"labels": LABELS}
    assert [each["metadata"]["labels"] for each in made["spec"]["dataVolumeTemplates"]] == [LABELS, LABELS]


@pytest.mark.spec("stakater", 53)
def test_every_object_is_labelled_and_owned() -> None:
    everything = disk() | {"sshPublicKey": {"data": KEY}, "cloudInit": {"password": "x"}, "service": {"enabled": True}}
    made = objects(everything)
    assert list(made) == ["Secret/web-ssh-key", "Secret/web-cloudinit", "VirtualMachine/web", "Service/web-lb"]
    for each in made.values():
        assert each["metadata"]["labels"].items() >= LABELS.items()
        assert each["metadata"]["ownerReferences"] == [OWNER | {"controller": True, "blockOwnerDeletion": True}]
    spec = made["VirtualMachine/web"]["spec"]
    referenced = {volume["dataVolume"]["name"] for volume in spec["template"]["spec"]["volumes"] if "dataVolume" in volume}
    assert {each["metadata"]["name"] for each in spec["dataVolumeTemplates"]} == referenced


def test_without_a_uid_nothing_is_owned() -> None:
    assert all("ownerReferences" not in each["metadata"] for each in objects({"service": {"enabled": True}}, uid=None).values())


def test_crossplane_is_left_out_and_told() -> None:
    made = translated({}, compositionRef={"name": "x"})
    assert [(loss.field, loss.value) for loss in made.losses] == [("spec.compositionRef", {"name": "x"})]


def test_hardware_numbers() -> None:
    made = instance(
        {
            "cpu": {"cores": 4, "sockets": 2, "threads": 3},
            "memory": {"guest": "5000Mi"},
            "terminationGracePeriodSeconds": 7,
            "storage": {"size": "1.5Gi"},
        }
    )
    assert made["domain"]["cpu"] == {"cores": 4, "sockets": 2, "threads": 3}
    assert made["domain"]["memory"] == {"guest": "5000Mi"}
    assert made["terminationGracePeriodSeconds"] == 7


def test_data_source_and_storage() -> None:
    root = machine({"dataSource": {"name": "a", "namespace": "b"}, "storage": {"size": "1.5Gi", "storageClassName": "c"}})["spec"][
        "dataVolumeTemplates"
    ][0]
    assert root["metadata"]["name"] == "web-rootdisk"
    assert root["spec"]["sourceRef"] == {"kind": "DataSource", "name": "a", "namespace": "b"}
    assert root["spec"]["storage"] == {"storageClassName": "c", "resources": {"requests": {"storage": "1.5Gi"}}}
