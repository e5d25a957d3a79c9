"""The values of a Vitistack machine: every refusal with its place and its words, and the accepted counterpart beside it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddock.dialects.vitistack import rules
from paddock.kubernetes.admission import AdmissionResult, admit
from paddock.kubernetes.schema.finding import CauseType, Severity
from paddock.kubernetes.schema.kind import AdmissionSettings

EXAMPLES = Path("src/paddock/dialects/vitistack/examples")
CARD = {"name": "eth0", "networkName": "lan"}
ISO = {"kubevirt.io/boot-source": "datavolume"}


def machine(spec: dict[str, Any], name: str = "web", **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "vitistack.io/v1alpha1", "kind": "Machine", "metadata": {"name": name, **metadata}, "spec": spec}


def small(**spec: Any) -> dict[str, Any]:
    return {"template": "small", **spec}


def plain(**spec: Any) -> dict[str, Any]:
    """A machine without a template."""
    return {"resources": {"memory": {"size": "1Gi"}}, "disks": [{"name": "root", "size": "1Gi"}], **spec}


def disk(**fields: Any) -> dict[str, Any]:
    return small(disks=[{"name": "data", "size": "1Gi", **fields}])


def card(**fields: Any) -> dict[str, Any]:
    return small(networks=[CARD | fields])


def domain(**fields: Any) -> dict[str, Any]:
    return small(domain=fields)


def bootloader(**fields: Any) -> dict[str, Any]:
    return {"firmware": {"bootloader": fields}}


def admitted(spec: dict[str, Any], **metadata: Any) -> AdmissionResult:
    return admit(machine(spec, **metadata), AdmissionSettings())


def told(admission: AdmissionResult, severity: Severity) -> list[tuple[str, str]]:
    return [(found.field, found.message) for found in admission.findings if found.severity is severity]


def errors(admission: AdmissionResult) -> list[tuple[str, str]]:
    return told(admission, Severity.ERROR)


def warnings(admission: AdmissionResult) -> list[tuple[str, str]]:
    return told(admission, Severity.WARNING)


def case(name: str, spec: dict[str, Any], field: str, words: str, *items: int) -> Any:
    return pytest.param(spec, field, words, id=name, marks=pytest.mark.spec("vitistack", *items) if items else ())


def resources(**fields: Any) -> dict[str, Any]:
    return small(resources=fields)


def unsupported(value: str) -> str:
    return f'Unsupported value: "{value}"'


def refused() -> Iterator[Any]:
    for member, most in (("cores", 256), ("threads", 8), ("sockets", 16)):
        for value in (0, -1, most + 1):
            yield case(f"{member} {value}", resources(cpu={member: value}), f"resources.cpu.{member}", f"must be between 1 and {most}")
    yield case(
        "no memory", {"disks": [{"name": "root", "size": "1Gi"}]}, "resources.memory.size", "needed when spec.template is not set", 13
    )
    yield case("no memory size", plain(resources={"memory": {}}), "resources.memory.size", "Required value", 13)
    yield case("memory text", resources(memory={"size": "4GB!"}), "resources.memory.size", "not a Kubernetes quantity")
    yield case("memory too small", resources(memory={"size": "512Ki"}), "resources.memory.size", "must be at least 1Mi")
    yield case(
        "memory in half bytes", resources(memory={"size": "2097152500m"}), "resources.memory.size", "must be a whole number of bytes"
    )
    no_disk = "Required value: a machine without a template needs a disk"
    yield case("no disks", plain(disks=[]), "disks", no_disk, 14)
    yield case("disk is booted first", plain(disks=[], bootOrder=["disk", "network"]), "disks", no_disk, 14)
    for size, words in (("20GB!", "not a Kubernetes quantity"), ("0", "must be greater than 0"), ("-1Gi", "must be greater than 0")):
        yield case(f"size {size}", disk(size=size), "disks[0].size", words, 18)
    yield case("no size", small(disks=[{"name": "data"}]), "disks[0].size", 'Required value: the template "small" has no disk of this name')
    yield case("no size, no template", plain(disks=[{"name": "root"}]), "disks[0].size", "Required value: no template gives it")
    yield case("no disk name", small(disks=[{"size": "1Gi"}]), "disks[0].name", "Required value", 19)
    yield case("disk name", disk(name="Data_1"), "disks[0].name", "must be a DNS-1123 label")
    twice = small(disks=[{"name": "a", "size": "1Gi"}, {"name": "a", "size": "1Gi"}])
    yield case("disk twice", twice, "disks[1].name", 'Duplicate value: "a"', 19)
    yield case("disk cloudinitdisk", disk(name="cloudinitdisk"), "disks[0].name", "reserved disk name", 19)
    yield case("disk cdrom-iso", disk(name="cdrom-iso"), "disks[0].name", "reserved disk name", 19)
    yield case("class", disk(storageClass="Fast SSD"), "disks[0].storageClass", "must be a DNS-1123 subdomain")
    yield case("mode RWO", disk(accessMode="RWO"), "disks[0].accessMode", unsupported("RWO"), 20)
    read_only = {"name": "root", "size": "1Gi", "accessMode": "ReadOnlyMany"}
    words = "the root disk must be writable"
    yield case("root read-only", small(disks=[read_only]), "disks[0].accessMode", words, 20)
    yield case(
        "first read-only", plain(disks=[read_only | {"name": "sys"}, {"name": "b", "size": "1Gi"}]), "disks[0].accessMode", words, 20
    )
    yield case("named root read-only", plain(disks=[{"name": "a", "size": "1Gi"}, read_only]), "disks[1].accessMode", words, 20)
    yield case("volume mode", disk(volumeMode="Raw"), "disks[0].volumeMode", unsupported("Raw"))
    yield from _refused_of_cards()
    yield from _refused_of_guests()


def _refused_of_cards() -> Iterator[Any]:
    yield case("no card name", small(networks=[{"networkName": "lan"}]), "networks[0].name", "Required value")
    yield case("card name", card(name="eth 0"), "networks[0].name", "must consist of letters")
    yield case("card twice", small(networks=[CARD, CARD]), "networks[1].name", 'Duplicate value: "eth0"')
    nowhere = small(networks=[{"name": "eth0"}])
    yield case("no network", nowhere, "networks[0].networkName", "Required value: name of a NetworkConfiguration")
    yield case("network", card(networkName="Lan!"), "networks[0].networkName", "must be a DNS-1123 subdomain")
    yield case("37 cards", small(networks=[CARD | {"name": f"e{n}"} for n in range(37)]), "networks", "must have at most 36 items")
    yield case("model e1000e", card(model="e1000e"), "networks[0].model", unsupported("e1000e"), 35)
    yield case("mac text", card(macAddress="52:54:00:12:34"), "networks[0].macAddress", "must be a MAC address: six hexadecimal pairs")
    multicast = card(macAddress="53:54:00:12:34:56")
    yield case("multicast mac", multicast, "networks[0].macAddress", "low bit of the first octet must be 0", 36)
    yield case("zero mac", card(macAddress="00:00:00:00:00:00"), "networks[0].macAddress", "must not be all zero")
    same = [CARD | {"macAddress": "52:54:00:AB:34:56"}, CARD | {"name": "eth1", "macAddress": "52-54-00-ab-34-56"}]
    yield case("mac twice", small(networks=same), "networks[1].macAddress", 'Duplicate value: "52-54-00-ab-34-56"', 36)
    yield case("boot floppy", small(bootOrder=["floppy"]), "bootOrder[0]", unsupported("floppy"), 42)
    yield case("boot twice", small(bootOrder=["disk", "disk"]), "bootOrder[1]", 'Duplicate value: "disk"')


def _refused_of_guests() -> Iterator[Any]:
    listed = small(cloudInit={"userData": "#cloud-config\n- a\n"})
    yield case("user data", listed, "cloudInit.userData", "not valid cloud-config: line 2:")
    yield case("no secret name", small(cloudInit={"secretRef": {}}), "cloudInit.secretRef.name", "Required value")
    yield case("secret key", small(cloudInit={"secretRef": {"name": "a", "key": "a b"}}), "cloudInit.secretRef.key", "must consist of")
    own = small(cloudInit={"secretRef": {"name": "web-cloudinit", "key": "foo"}})
    yield case("own secret", own, "cloudInit.secretRef.name", "the machine's own Secret has this name")
    for name in ("virt", "pc-q35x", "pc-q35-", "q35-9.0", "pc-i440fx-a b", "PC-Q35", "pc-q35-a,b", "pc-q35\n"):
        yield case(f"type {name!r}", domain(machine={"type": name}), "domain.machine.type", "Unsupported value: ", 51)
    yield case("hyperv without apic", domain(features={"hyperv": True, "apic": False}), "domain.features.apic", "hyperv needs apic", 54)
    place = "domain.firmware.bootloader.secureBoot"
    yield case("secure alone", domain(**bootloader(secureBoot=True)), place, "Secure Boot needs efi: true", 56)
    secure = bootloader(efi=True, secureBoot=True)
    for name in ("pc-i440fx", "pc-i440fx-9.0", "pc"):
        smm = "Secure Boot needs SMM, which needs q35"
        yield case(f"secure {name}", domain(**secure, machine={"type": name}), place, smm, 56)


@pytest.mark.parametrize(("spec", "field", "words"), list(refused()))
def test_refused_at_its_place(spec: dict[str, Any], field: str, words: str) -> None:
    found = errors(admitted(spec))
    assert [place for place, _ in found] == [f"spec.{field}"]
    assert words in found[0][1]


def accepted() -> Iterator[Any]:
    def good(name: str, spec: dict[str, Any], *items: int) -> Any:
        return pytest.param(spec, id=name, marks=pytest.mark.spec("vitistack", *items) if items else ())

    yield good("memory and one disk", plain(), 12)
    yield good("no disks, network first", plain(disks=[], bootOrder=["network"]), 14)
    yield good("size in bytes", disk(size=1073741824))
    yield good("decimal size", disk(size="20G"), 18)
    yield good("root without size", small(disks=[{"name": "root", "storageClass": "fast"}]), 9)
    for mode in ("ReadWriteMany", "ReadOnlyMany"):
        yield good(f"mode {mode}", disk(accessMode=mode), 20)
    yield good(
        "second disk read-only", plain(disks=[{"name": "a", "size": "1Gi"}, {"name": "b", "size": "1Gi", "accessMode": "ReadOnlyMany"}])
    )
    yield good("empty class", disk(storageClass=""))
    yield good("Block", disk(volumeMode="Block"), 21)
    for model in ("virtio", "e1000", "rtl8139"):
        yield good(f"model {model}", card(model=model), 35)
    yield good("mac with hyphens", card(macAddress="52-54-00-12-34-56"), 36)
    for name in ("pc-q35", "pc-i440fx", "pc-q35-rhel9.4.0", "pc-i440fx-2.12", "q35", "pc"):
        yield good(f"type {name}", domain(machine={"type": name}), 51)
    yield good("secure with efi", domain(**bootloader(efi=True, secureBoot=True), machine={"type": "pc-q35-9.0"}), 56)
    yield good("apic without hyperv", domain(features={"apic": False}))
    yield good("own secret under userdata", small(cloudInit={"secretRef": {"name": "web-cloudinit"}}))
    for name in ("huge", "none", "Small"):
        yield good(f"template {name}", {"template": name})


@pytest.mark.parametrize("spec", list(accepted()))
def test_accepted_counterparts(spec: dict[str, Any]) -> None:
    assert errors(admitted(spec)) == []


def test_all_failures_come_in_one_answer() -> None:
    wrong = {"disks": [{"name": "a", "size": "x"}], "networks": [{"name": "e", "networkName": "n", "model": "x"}], "bootOrder": ["x"]}
    assert [place for place, _ in errors(admitted(wrong))] == [
        "spec.disks[0].size",
        "spec.networks[0].model",
        "spec.bootOrder[0]",
        "spec.resources.memory.size",
    ]


def test_a_size_that_is_wrong_is_not_also_missing() -> None:
    assert len(errors(admitted(plain(disks=[{"name": "root", "size": "20GB!"}])))) == 1
    assert len(errors(admitted(plain(resources={"memory": "4Gi"})))) == 1


def test_causes() -> None:
    found = admitted({"disks": [{"name": "root", "size": "1Gi", "accessMode": "RWO"}], "domain": {"machine": {"type": "virt"}}}).findings
    assert {each.field: each.cause for each in found if each.severity is Severity.ERROR} == {
        "spec.disks[0].accessMode": CauseType.NOT_SUPPORTED,
        "spec.domain.machine.type": CauseType.NOT_SUPPORTED,
        "spec.resources.memory.size": CauseType.REQUIRED,
    }


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("machineClass", "medium"),
        ("memory", 4294967296),
        ("cpu", {"cores": 2}),
        ("network", {}),
        ("provider", "kubevirt"),
        ("sshKeys", []),
        ("tags", {}),
        ("securityGroups", []),
        ("backup", {}),
    ],
)
@pytest.mark.spec("vitistack", 80)
def test_members_of_both_forms_are_refused_by_name(key: str, value: Any) -> None:
    ((path, message),) = errors(admit(machine(small(**{key: value})), AdmissionSettings()))
    assert path == f"spec.{key}"
    assert message.endswith(f"; spec.template is of the first, spec.{key} of the second: leave one out")


def test_members_of_the_own_form_inside_members_count_too() -> None:
    for more in ({"disks": [{"name": "root", "sizeGB": 20}]}, {"os": {"family": "linux"}}, {"cloudInit": {"type": "noCloud"}}):
        ((path, message),) = errors(admitted(small(**more)))
        assert path.startswith(f"spec.{next(iter(more))}") and "spec.template is of the first" in message


def test_defaults_are_those_that_no_template_gives() -> None:
    spec = small(disks=[{"name": "root"}], networks=[CARD], cloudInit={"secretRef": {"name": "s"}}, domain={"features": {}} | bootloader())
    assert admitted(spec).data["spec"] == {
        "template": "small",
        "disks": [{"name": "root"}],
        "networks": [CARD | {"model": "virtio"}],
        "cloudInit": {"secretRef": {"name": "s", "key": "userdata"}},
        "domain": {"features": {"acpi": True, "hyperv": False}, "firmware": {"bootloader": {"efi": False, "secureBoot": False}}},
    }
    assert admitted({"template": "small"}).data["spec"] == {"template": "small", "disks": [], "networks": []}


def test_the_name_becomes_a_label() -> None:
    assert errors(admit(machine(small(), name="x" * 64), AdmissionSettings()))[0][0] == "metadata.name"
    assert "must be no more than 63 characters" in errors(admit(machine(small(), name="x" * 64), AdmissionSettings()))[0][1]
    assert "must be a DNS-1123 label" in errors(admit(machine(small(), name="a.b"), AdmissionSettings()))[0][1]
    assert admit(machine(small(), name="x" * 63), AdmissionSettings()).accepted


@pytest.mark.parametrize(
    ("annotations", "field", "words"),
    [
        ({"vitistack.io/power-state": "off"}, "vitistack.io/power-state", 'Unsupported value: "off"'),
        ({"vitistack.io/root-image": "ftp://a/b"}, "vitistack.io/root-image", "must start with http://, https:// or docker://"),
        ({"vitistack.io/root-image": "docker://"}, "vitistack.io/root-image", "must start with"),
        ({"kubevirt.io/boot-source-type": "pvc"}, "kubevirt.io/boot-source-type", 'Unsupported value: "pvc"'),
        ({"vitistack.io/boot-source-size": "many"}, "vitistack.io/boot-source-size", "not a Kubernetes quantity"),
        ({"vitistack.io/boot-source-size": "0"}, "vitistack.io/boot-source-size", "above 0"),
    ],
)
def test_annotations_that_do_something(annotations: dict[str, str], field: str, words: str) -> None:
    found = errors(admitted(small(), annotations=annotations))
    assert [place for place, _ in found] == [f"metadata.annotations[{field}]"]
    assert words in found[0][1]


def test_the_address_of_an_installation_image_fits_its_type() -> None:
    spec = small(os={"imageID": "docker://e.org/a"})
    assert [place for place, _ in errors(admitted(spec, annotations=ISO))] == ["spec.os.imageID"]
    registry = ISO | {"kubevirt.io/boot-source-type": "registry"}
    assert admitted(spec, annotations=registry).accepted
    web = admitted(small(os={"imageID": "https://e.org/a"}), annotations=registry)
    assert errors(web) == [("spec.os.imageID", 'Invalid value: "https://e.org/a": must be the name of an image in a registry')]


@pytest.mark.parametrize(
    ("spec", "metadata", "field", "words"),
    [
        ({"template": "none"}, {}, "spec.template", 'template "none" is not built in: use small, medium or large'),
        ({"template": "Small"}, {}, "spec.template", 'template "Small" is not built in: use small, medium or large'),
        ({"template": "mediun"}, {}, "spec.template", 'template "mediun" is not built in'),
        (small(), {"labels": {"vitistack.io/machine-template": "large"}}, "metadata.labels", "spec.template decides"),
        (plain(), {"labels": {"vitistack.io/machine-template": "large"}}, "metadata.labels", "spec.template decides"),
        (resources(cpu={"cores": 64, "sockets": 9}), {}, "spec.resources.cpu", "576 vCPUs exceed the limit 512"),
        (small(cloudInit={"networkData": "a: 1"}), {}, "spec.cloudInit.networkData", "no version: 1 or version: 2"),
        (small(cloudInit={"userData": "hello"}), {}, "spec.cloudInit.userData", "no header that cloud-init knows"),
        (small(cloudInit={"userData": "#!/x", "secretRef": {"name": "s"}}), {}, "spec.cloudInit.secretRef", "secretRef is ignored"),
        (small(os={"imageID": "http://a/b"}), {}, "spec.os.imageID", "has no effect without the annotation"),
        (small(), {"annotations": ISO}, "metadata.annotations", "has no effect without spec.os.imageID"),
        (small(), {"annotations": {"kubevirt.io/boot-source": "kernel"}}, "metadata.annotations", '"kernel" has no effect here'),
        pytest.param(
            small(bootOrder=["cdrom"]), {}, "spec.bootOrder[0]", "there is no CD-ROM to boot from", marks=pytest.mark.spec("vitistack", 41)
        ),
    ],
)
def test_warnings(spec: dict[str, Any], metadata: dict[str, Any], field: str, words: str) -> None:
    admission = admitted(spec, **metadata)
    assert admission.accepted
    found = warnings(admission)
    assert len(found) == 1
    assert found[0][0].startswith(field)
    assert words in found[0][1]


@pytest.mark.parametrize(
    ("spec", "metadata"),
    [
        (small(cloudInit={"networkData": "version: 1\nconfig: []\n"}), {}),
        (small(cloudInit={"networkData": "network: {version: 2}\n"}), {}),
        (small(), {"labels": {"vitistack.io/machine-template": "small"}}),
        (small(bootOrder=["cdrom"], os={"imageID": "http://a/b"}), {"annotations": ISO}),
    ],
)
def test_no_warnings(spec: dict[str, Any], metadata: dict[str, Any]) -> None:
    assert warnings(admitted(spec, **metadata)) == []


def test_annotations_without_an_image_are_borne() -> None:
    assert warnings(admitted(small(), annotations={"kubevirt.io/boot-source-type": "registry"})) == []
    assert admitted(small(os={}), annotations={"kubevirt.io/boot-source-type": "registry"}).accepted


def test_a_template_of_ones_own_is_only_noted() -> None:
    admission = admitted({"template": "huge"})
    assert warnings(admission) == []
    assert any(place == "spec.template" and 'MachineTemplate "huge"' in text for place, text in told(admission, Severity.NOTE))


@pytest.mark.parametrize(
    ("spec", "metadata", "blank"),
    [
        (small(), {}, True),
        (small(bootOrder=["disk", "network"]), {}, False),
        (small(), {"annotations": {"vitistack.io/root-image": "https://a/b"}}, False),
        (small(os={"imageID": "http://a/b"}), {"annotations": ISO}, False),
        (small(os={"imageID": "http://a/b"}), {"annotations": ISO | {"vitistack.io/os-installed": "true"}}, True),
    ],
)
def test_a_machine_with_nothing_to_boot_is_told(spec: dict[str, Any], metadata: dict[str, Any], *, blank: bool) -> None:
    assert any("starts blank" in text for _, text in told(admitted(spec, **metadata), Severity.NOTE)) is blank


def test_user_data_is_never_repeated() -> None:
    for text in ("#cloud-config\n- hunter2\n", ["hunter2"]):
        admission = admitted(small(cloudInit={"userData": text}))
        assert not admission.accepted
        assert "hunter2" not in " ".join(found.message for found in admission.findings)


DOCUMENTS = [
    pytest.param(document, id=f"{path.stem}-{document['kind']}-{document['metadata']['name']}")
    for path in sorted(EXAMPLES.glob("*.yaml"))
    for document in yaml.safe_load_all(path.read_text())
]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_examples_are_good(document: dict[str, Any]) -> None:
    admission = admit(document, AdmissionSettings())
    assert errors(admission) == warnings(admission) == []


def test_every_kind_has_an_example() -> None:
    kinds = {each.values[0]["kind"] for each in DOCUMENTS}  # type: ignore[index]
    assert {"Machine", "MachineTemplate", "NetworkConfiguration"} <= kinds


def test_every_rule_has_an_id_of_its_own_and_a_text() -> None:
    ids = [each.id for each in (*rules.RULES, *rules.TRANSITIONS)]
    assert len(set(ids)) == len(ids)
    assert all(each.id.startswith("vitistack/") and each.text for each in (*rules.RULES, *rules.TRANSITIONS))


def test_rules_bear_a_machine_that_is_wrong_everywhere() -> None:
    spec: dict[str, Any] = dict.fromkeys(("template", "resources", "disks", "networks", "bootOrder", "cloudInit", "domain", "os"), 5)
    assert len(errors(admitted(spec))) >= len(spec)
    entries = {"disks": [5, {}, None], "networks": [5, {}, None], "bootOrder": [5, None], "cloudInit": {"secretRef": 5}}
    assert errors(admitted(entries | {"template": "small", "domain": {"machine": 5, "features": 5, "firmware": {"bootloader": 5}}}))
