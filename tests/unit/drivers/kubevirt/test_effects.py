"""What a class and a network say beyond sizes: where it stands in the machine, and which limitations name the rest."""

import json
from typing import Any

import msgspec
import pytest

from paddock.contract import messages as m
from paddock.contract import payloads as p
from paddock.contract.description import MachineDescription, on_pod_network
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.dialects.virtrigaud.translate import described
from paddock.engine.machine.argv.command import command
from paddock.engine.networks.nics import TrafficLimit
from paddock_drivers.kubevirt import documents
from paddock_drivers.kubevirt.booting import fetched
from paddock_drivers.kubevirt.settings import KubeVirtDriverSettings
from tests.coroutines import played
from tests.unit.drivers.kubevirt.conftest import EVERYTHING, HARDWARE, IMAGE, Target, creation
from tests.unit.engine.machine.argv.samples import TCG

INGRESS, EGRESS = "kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth"
LIMITS = p.LimitsPayload(cpu_limit=3000, cpu_reservation=1000)
KNOWN = KubeVirtDriverSettings(translation=described.translate, processor_mhz=2000)


def built(settings: KubeVirtDriverSettings = KNOWN, hardware: p.ClassPayload = HARDWARE, **more: Any) -> documents.MachineDocuments:
    given = MachineDescription(name="web", hardware=hardware, image=IMAGE, **more)
    return documents.build(given, fetched(IMAGE), settings)


def of_class(**changes: Any) -> p.ClassPayload:
    return msgspec.structs.replace(HARDWARE, **changes)


# --- limits of processors ---------------------------------------------------------------------------------------------------


@pytest.mark.spec("virtrigaud", 118)
@pytest.mark.parametrize(
    ("given", "limits", "requests"),
    [
        (LIMITS, {"cpu": "1500m"}, {"cpu": "500m"}),
        (p.LimitsPayload(cpu_limit=1000, cpu_reservation=5000), {"cpu": "500m"}, {"cpu": "500m"}),
        (p.LimitsPayload(cpu_limit=1), {"cpu": "1m"}, None),
        (
            p.LimitsPayload(cpu_limit=3000, memory_limit_mib=2048, memory_reservation_mib=512),
            {"cpu": "1500m", "memory": "2048Mi"},
            {"memory": "512Mi"},
        ),
    ],
)
def test_megahertz_become_shares_of_processors(given: p.LimitsPayload, limits: Any, requests: Any) -> None:
    made = built(hardware=of_class(resource_limits=given))
    resources = made.machine.spec.template.spec.domain.resources
    assert resources is not None and (resources.limits, resources.requests) == (limits, requests)
    assert not any("cpuLimit" in each or "cpuReservation" in each for each in made.limitations)


@pytest.mark.spec("virtrigaud", 118)
def test_what_limits_cannot_be_kept_is_named() -> None:
    given = of_class(resource_limits=p.LimitsPayload(cpu_limit=3000, cpu_reservation=1000, cpu_shares=4000, memory_limit_mib=512))
    unknown = built(KubeVirtDriverSettings(translation=described.translate), given)
    assert unknown.machine.spec.template.spec.domain.resources is None and any("resourceLimits" in each for each in unknown.limitations)
    named = [each for each in built(KNOWN, given).limitations if "resourceLimits" in each]
    assert named and not any("cpuLimit" in each or "cpuReservation" in each for each in named)
    pinned = of_class(resource_limits=LIMITS, performance_profile=p.PerformancePayload(latency_sensitivity="high"))
    made = built(KNOWN, pinned)
    assert made.machine.spec.template.spec.domain.resources is None and any("resourceLimits" in each for each in made.limitations)


@pytest.mark.spec("virtrigaud", 118)
@played
async def test_the_nodes_tell_the_frequency(target: Target, /) -> None:
    api = target.host.api
    node = (await api.get("/api/v1/nodes")).data["items"][0]["metadata"]["name"]
    labels = {"metadata": {"labels": {"cpu-timer.node.kubevirt.io/tsc-frequency": "2000123456"}}}
    assert (await api.merge(f"/api/v1/nodes/{node}", labels)).status == 200
    vm_id = await target.running(hardware=of_class(resource_limits=LIMITS))
    assert (await target.host.running()).config.limits["cpu.max"].split()[0] == "150000"
    assert "limitations" not in await target.details(vm_id)


# --- other members of a class -----------------------------------------------------------------------------------------------


@pytest.mark.spec("virtrigaud", 119, 120)
@pytest.mark.spec("virtrigaud", 117, "else a condition says so")
@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"guest_tools_policy": "upgrade"}, "guestToolsPolicy"),
        ({"guest_tools_policy": "uninstall"}, "guestToolsPolicy"),
        ({"performance_profile": p.PerformancePayload(virtualization_based_security=True)}, "virtualizationBasedSecurity"),
        ({"performance_profile": p.PerformancePayload(hyper_threading_policy="avoid")}, "hyperThreadingPolicy"),
        ({"performance_profile": p.PerformancePayload(latency_sensitivity="low")}, "latencySensitivity"),
        ({"security_profile": p.SecurityPayload(vtd_enabled=True)}, "vtdEnabled"),
        ({"security_profile": p.SecurityPayload(tpm_enabled=True, tpm_version="1.2")}, "tpmVersion"),
        ({"security_profile": p.SecurityPayload(encryption_enabled=True)}, "encryptionPolicy"),
    ],
)
def test_what_cannot_be_done_is_named(changes: Any, named: str) -> None:
    assert any(named in each for each in built(hardware=of_class(**changes)).limitations)


@pytest.mark.spec("virtrigaud", 117, "install gives the machine the channel of its guest agent")
@pytest.mark.parametrize("policy", ["", "install", "skip"])
@played
async def test_guests_bring_their_tools_or_none(target: Target, /, policy: str) -> None:
    """Each policy gives the machine the channel, and installs nothing through it."""
    vm_id = await target.running(hardware=of_class(guest_tools_policy=policy))
    argv = command((await target.host.running()).config, TCG).argv
    assert any("org.qemu.guest_agent.0" in each for each in argv)
    assert "limitations" not in await target.details(vm_id)


@pytest.mark.spec("virtrigaud", 119, 120)
def test_what_can_be_done_stands_in_the_machine() -> None:
    profile = p.PerformancePayload(
        latency_sensitivity="high", nested_virtualization=True, cpu_hot_add_enabled=True, memory_hot_add_enabled=True
    )
    security = p.SecurityPayload(secure_boot=True, tpm_enabled=True, tpm_version="2.0")
    made = built(hardware=of_class(firmware="UEFI", performance_profile=profile, security_profile=security))
    domain = made.machine.spec.template.spec.domain
    assert made.limitations == () and domain.cpu is not None
    assert (domain.cpu.dedicatedCpuPlacement, domain.cpu.model, domain.cpu.sockets) == (True, "host-passthrough", 2)
    assert domain.devices.tpm is not None and domain.firmware is not None and domain.firmware.bootloader is not None
    assert domain.firmware.bootloader.efi is not None and domain.firmware.bootloader.efi.secureBoot is True


@pytest.mark.spec("virtrigaud", 120)
@played
async def test_encryption_that_is_required_is_refused(target: Target, /) -> None:
    secure = of_class(security_profile=p.SecurityPayload(encryption_enabled=True, require_encryption=True))
    with pytest.raises(ProviderError) as caught:
        await target.driver.create(creation(hardware=secure))
    assert caught.value.kind is ErrorKind.NOT_SUPPORTED
    assert (await target.names(EVERYTHING[0]))["virtualmachines"] == []


# --- traffic ----------------------------------------------------------------------------------------------------------------

QOS = p.QosPayload(ingress_limit=8_000_000, egress_limit=4_000_000)


@pytest.mark.spec("virtrigaud", 121)
def test_the_pod_networks_traffic_is_limited_by_annotations() -> None:
    made = built(networks=(p.NetworkPayload(name="lan", qos=QOS),))
    metadata = made.machine.spec.template.metadata
    assert metadata is not None and metadata.annotations is not None
    assert (metadata.annotations[INGRESS], metadata.annotations[EGRESS]) == ("8000000", "4000000")
    marked = p.QosPayload(egress_limit=4_000_000, priority=3, dscp=46)
    made = built(networks=(p.NetworkPayload(name="lan", qos=marked),))
    metadata = made.machine.spec.template.metadata
    assert metadata is not None and INGRESS not in (metadata.annotations or {})
    assert any("QoS" in each for each in made.limitations)


@pytest.mark.spec("virtrigaud", 121)
def test_a_bridges_traffic_is_limited_by_its_definition() -> None:
    made = built(networks=(p.NetworkPayload(name="lan", bridge="br7", qos=QOS),))
    (definition,) = made.definitions
    assert definition.spec is not None
    plugins = json.loads(definition.spec.config or "")["plugins"]
    assert plugins[1] == {
        "type": "bandwidth",
        "ingressRate": 8_000_000,
        "ingressBurst": 8_000_000,
        "egressRate": 4_000_000,
        "egressBurst": 4_000_000,
    }
    metadata = made.machine.spec.template.metadata
    assert metadata is None or INGRESS not in (metadata.annotations or {})


def test_a_network_of_somebody_else_keeps_its_own_limits() -> None:
    made = built(networks=(p.NetworkPayload(name="lan", network_name="theirs", qos=QOS),))
    assert any("qos" in each for each in made.limitations)
    assert not on_pod_network(p.NetworkPayload(network_name="theirs")) and on_pod_network(p.NetworkPayload())


@pytest.mark.spec("virtrigaud", 121)
@played
async def test_the_engine_gets_the_limits(target: Target, /) -> None:
    networks = (p.NetworkPayload(name="lan", qos=QOS), p.NetworkPayload(name="wan", bridge="br7", qos=QOS))
    answer = await target.driver.create(creation(networks=networks))
    assert await target.ends(answer.task) == ""
    assert await target.power(answer.id, m.PowerOp.ON) == ""
    cards = {name: card.traffic for (_, name), card in target.host.engine.networks.cards.items()}
    assert cards["lan"] == cards["wan"] == TrafficLimit(1_000_000, 1_000_000, 500_000, 500_000)
