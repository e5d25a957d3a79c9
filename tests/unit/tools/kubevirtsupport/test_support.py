"""The table of fields is carried out: each example has the effect that its line tells, and no field is without a line."""

from pathlib import Path

import pytest

from paddock.kubernetes.admission import admit
from paddock.kubernetes.schema.finding import Severity
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.translate.limits import Code, Weight
from tests.unit.kubevirt.translate.machines import changed, instance, translated
from tools.kubevirtsupport import table
from tools.kubevirtsupport.row import SupportRow

CARDS = "tests/unit/kubevirt/plan/instance/test_cards.py::test_a_card"
TAGS = "tests/unit/kubevirt/plan/instance/test_facts.py::test_devices_with_a_tag_are_told"
REFUSED = "tests/unit/kubevirt/kinds/test_rules.py::test_refused_at_its_place_and_accepted_otherwise"
SECRETS = "tests/host/runs/test_inside.py::test_keys_and_passwords_of_secrets_are_in_the_guest"
PROBES = "tests/host/runs/test_starts.py::test_a_guest_is_ready_as_its_probe_says_and_ended_when_it_is_dead"
HOTPLUG = "tests/unit/app/subresources/test_volumes.py::test_a_volume_of_a_machine_stays_in_its_template_and_comes_to_what_runs"
PLACEMENT = "tests/unit/kubevirt/plan/test_placement.py::test_alone_on_the_host"
RESOLVERS = "tests/unit/kubevirt/plan/instance/test_cards.py::test_the_resolver_of_a_guest_is_told_with_its_card"
# What neither the command line nor a limit shows, and the test that does.
ELSEWHERE = {
    "domain.memory.reservedOverhead.addedOverhead": "tests/unit/kubevirt/translate/test_config.py::test_memory_is_set_aside",
    "domain.devices.interfaces[].slirp": REFUSED,
    "domain.devices.interfaces[].passt": REFUSED,
    "domain.devices.interfaces[].macvtap": REFUSED,
    "domain.devices.interfaces[].ports.**": CARDS,
    "domain.devices.interfaces[].portRanges.**": CARDS,
    "domain.devices.interfaces[].dhcpOptions.**": CARDS,
    "domain.devices.interfaces[].tag": TAGS,
    "domain.devices.gpus[].tag": TAGS,
    "domain.devices.hostDevices[].tag": TAGS,
    "volumes[].name": "tests/unit/kubevirt/plan/instance/test_defaults.py::test_defaults",
    "volumes[].dataVolume.hotpluggable": HOTPLUG,
    "volumes[].persistentVolumeClaim.readOnly": "tests/scenario/hosts/test_life.py::test_a_claim_that_is_only_read_is_no_disk_to_write_to",
    "volumes[].persistentVolumeClaim.hotpluggable": HOTPLUG,
    "networks[].name": "tests/unit/kubevirt/plan/instance/test_cards.py::test_a_card_that_cannot_be_had",
    "networks[].pod.vmNetworkCIDR": CARDS,
    "networks[].pod.vmIPv6NetworkCIDR": CARDS,
    "networks[].multus.**": CARDS,
    "hostname": CARDS,
    "subdomain": "tests/unit/kubevirt/plan/instance/test_cards.py::test_the_names_of_a_guest_are_told_with_its_card",
    "dnsPolicy": RESOLVERS,
    "dnsConfig.nameservers": RESOLVERS,
    "dnsConfig.searches": RESOLVERS,
    "terminationGracePeriodSeconds": (
        "tests/unit/kubevirt/controllers/virtualmachineinstance/test_life.py::test_a_guest_that_does_not_listen_is_ended_after_its_grace"
    ),
    "evictionStrategy": "tests/unit/kubevirt/plan/instance/test_defaults.py::test_defaults",
    "accessCredentials[].sshPublicKey.source.**": SECRETS,
    "accessCredentials[].sshPublicKey.propagationMethod.noCloud": SECRETS,
    "accessCredentials[].sshPublicKey.propagationMethod.configDrive": SECRETS,
    "accessCredentials[].sshPublicKey.propagationMethod.qemuGuestAgent.**": SECRETS,
    "accessCredentials[].userPassword.**": SECRETS,
    "livenessProbe.**": PROBES,
    "readinessProbe.**": PROBES,
    "nodeSelector": PLACEMENT,
    "affinity.**": PLACEMENT,
    "tolerations[].**": "tests/unit/kubevirt/plan/test_placement.py::test_taints",
    "topologySpreadConstraints[].**": PLACEMENT,
    "priorityClassName": PLACEMENT,
}
EXAMPLES = [row for row in table.ROWS if row.shows or row.lacks]
PLAIN = instance()


@pytest.mark.parametrize("row", EXAMPLES, ids=[f"{row.field} {row.text[:30]}" for row in EXAMPLES])
def test_example(row: SupportRow) -> None:
    hold(row)


def hold(row: SupportRow) -> None:
    """The example of a row has the effect; the plain machine has not."""
    if isinstance(row.shows, Code):
        hold_limit(row, row.shows)
        return
    found = translated(instance(row.given, row.annotations), kvm=row.kvm, host=row.host)
    assert found.result.startable, found.result.limits
    assert Code.FIELD_UNREAD not in {limit.code for limit in found.result.limits}
    if row.shows:
        assert row.shows in found.text
    if row.lacks:
        assert row.lacks not in found.text


def hold_limit(row: SupportRow, code: Code) -> None:
    """The limit is told, with a message, before a command line is tried; a plain machine has none."""
    found = translated(instance(row.given, row.annotations), kvm=row.kvm, host=row.host)
    told = [limit for limit in found.result.limits if limit.code is code]
    assert told
    assert code.sentence in told[0].message
    assert found.result.startable == (code.weight is Weight.NOTE)
    if found.result.startable:
        assert found.text
    assert translated(PLAIN).result.limits == ()


# Where upstream has a gate, the gate is open.
GATES = AdmissionSettings(
    gates=frozenset(
        {
            "RebootPolicy",
            "HostDevices",
            "DownwardMetrics",
            "VSOCK",
            "GPUsWithDRA",
            "HostDevicesWithDRA",
            "NetworkDevicesWithDRA",
            "PersistentReservation",
        }
    ),
    host_disk_paths=("/",),
    # Utility volumes come later, from controllers.
    trusted=True,
)


def hold_accepted(row: SupportRow) -> None:
    """A machine with the example's fields is accepted, by all rules. What KubeVirt asks of templates alone is given to an instance."""
    spec = changed({"domain": {"devices": {}, "memory": {"guest": "1Gi"}}}, row.given)
    running = row.shows is Code.MEMORY_FIXED
    found = admit(
        {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstance" if running else "VirtualMachine",
            "metadata": {"name": "vm", "namespace": "ns"},
            "spec": spec if running else {"runStrategy": "Halted", "template": {"spec": spec}},
        },
        GATES,
    )
    assert [f"{each.field}: {each.message}" for each in found.findings if each.severity is Severity.ERROR] == [], row.field


@pytest.mark.spec("kubevirt", 7)
def test_every_field_has_its_effect_or_a_named_limit() -> None:
    """The whole table at once, and nothing declared is left out of it."""
    assert table.unspoken() == []
    for row in EXAMPLES:
        hold(row)
        hold_accepted(row)
    for row in table.ROWS:
        # Whoever does not reach QEMU says who else carries it out, or why nothing comes of it.
        assert row.by != "QEMU" or row.shows or row.lacks, row.field
        assert row.text


@pytest.mark.spec("kubevirt", 7)
@pytest.mark.spec("kubevirt", 109)
def test_a_row_without_an_example_names_the_test_that_carries_it_out() -> None:
    silent = {row.field for row in table.ROWS if not row.shows and not row.lacks and row.by != "no effect"}
    shown = {row.field for row in EXAMPLES}
    assert silent - shown == ELSEWHERE.keys()
    root = Path(__file__).parents[4]
    for field, test in ELSEWHERE.items():
        file, _, name = test.partition("::")
        assert f"def {name}(" in (root / file).read_text(encoding="utf-8"), field


def test_every_limit_is_in_the_table() -> None:
    shown = {row.shows for row in table.ROWS if isinstance(row.shows, Code)}
    assert shown | {Code.STATE_MISSING, Code.FIELD_UNREAD} == set(Code)


def test_what_means_something_to_qemu_changes_the_command_line() -> None:
    """Without the field the effect is not there, but for what is so by default."""
    plain = {kvm: translated(PLAIN, kvm=kvm).text for kvm in (True, False)}
    by_default = {row.field for row in EXAMPLES if isinstance(row.shows, str) and row.shows and row.shows in plain[row.kvm]}
    assert by_default == {
        "domain.cpu.model",
        "domain.devices.interfaces[].masquerade",
        "domain.devices.interfaces[].bridge",
        "domain.devices.interfaces[].passtBinding",
        "domain.devices.interfaces[].binding.name",
        "domain.devices.interfaces[].model",
        "domain.devices.video.type",
        "networks[].pod",
    }
    lacking = [row.field for row in EXAMPLES if row.lacks and row.lacks not in plain[row.kvm]]
    assert set(lacking) <= {
        "domain.firmware.bootloader.bios",
        "domain.devices.disks[].cdrom.tray",
        "domain.devices.tpm.enabled",
        "volumes[].memoryDump.**",
        *(row.field for row in EXAMPLES if row.field.startswith("domain.features.hyperv.") and row.field.endswith(".enabled")),
    }


ANNOTATED = [row for row in table.ANNOTATIONS if row.shows or row.lacks]


@pytest.mark.parametrize("row", ANNOTATED, ids=[row.field for row in ANNOTATED])
def test_annotations(row: SupportRow) -> None:
    with_it, without = (translated(instance(row.given, {row.field: value})).text for value in ("true", "false"))
    if row.field == "kubevirt.io/ignitiondata":
        without = translated(instance(row.given)).text
    if isinstance(row.shows, str) and row.shows:
        assert row.shows in with_it
        assert row.shows not in without
    if row.lacks:
        assert row.lacks not in with_it
        assert row.lacks in without


def test_weights() -> None:
    assert {code.weight for code in Code} == set(Weight)
    assert Code.SRIOV_MISSING.reason == "SriovMissing"
    assert len({code.reason for code in Code}) == len(Code)
    # Members of an Enum with equal values would be one member.
    assert len(Code.__members__) == len(Code)
