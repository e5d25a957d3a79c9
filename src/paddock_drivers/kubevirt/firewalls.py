"""The security of a machine's card on the pod network, as a NetworkPolicy that belongs to the machine.

A NetworkPolicy names what is allowed, and several of them add up. So a firewall or an isolation becomes one, where a denial takes a network
out of what is allowed, whatever its priority. What has no such form is a limitation, and nothing is opened for it.
"""

import ipaddress
from collections.abc import Iterator
from typing import Any

import msgspec

from paddock.base.jsondata import Data
from paddock.contract.description import MachineDescription, on_pod_network
from paddock.contract.payloads import NetworkPayload
from paddock.contract.specs import FirewallConfig, FirewallRule, NetworkIsolation
from paddock.kubernetes.client.errors import AlreadyExists
from paddock.kubernetes.client.options import DeletionOptions, json_patch
from paddock.kubernetes.client.target import Key
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock_drivers.kit import refusals
from paddock_drivers.kubevirt import targets
from paddock_drivers.kubevirt.cluster import TargetCluster, owner_reference

_EVERYWHERE = "0.0.0.0/0"
_SIDES = {
    "in": ("Ingress", "ingress", "from", "sourceCIDR", "destinationCIDR"),
    "out": ("Egress", "egress", "to", "destinationCIDR", "sourceCIDR"),
}
_PROTOCOLS = {"tcp": ("TCP",), "udp": ("UDP",), "all": ("TCP", "UDP")}


class MachineFirewall(msgspec.Struct, frozen=True):
    """The spec of the NetworkPolicy of a machine, if it has one, and what it does not do."""

    spec: Data | None = None
    limitations: tuple[str, ...] = ()


def firewall(description: MachineDescription) -> MachineFirewall:
    """Return the firewall of a machine; raises InvalidSpec for one that cannot be read. Pure."""
    spec: Data | None = None
    limits: list[str] = []
    for nic in description.networks:
        if not nic.security:
            continue
        where = f"networks[{nic.name}].Security"
        rules, isolation = _read(nic)
        if nic.security.encryption and nic.security.encryption.get("enabled"):
            limits.append(f"{where}.Encryption: KubeVirt encrypts no traffic; encrypt it in the guest")
        if nic.security.forbid_promiscuous or nic.security.forbid_mac_changes or nic.security.forbid_forged_transmits:
            limits.append(f"{where}: KubeVirt forbids no promiscuous mode, no changed MAC address and no forged sender")
        if not on_pod_network(nic):
            if rules is not None or isolation is not None:
                limits.append(f"{where}: firewalls and isolation hold on the pod network alone, and this card is on a bridge")
            continue
        if rules is not None:
            spec = {**(spec or {}), **_of_firewall(rules, where, limits)}
            if isolation is not None:
                limits.append(f"{where}.Isolation: it cannot be kept beside a firewall; say it in the firewall's rules")
        elif isolation is not None:
            spec = _of_isolation(isolation, where, limits)
    if spec is not None:
        kinds = [kind for kind, member, *_ in _SIDES.values() if member in spec]
        spec = {"podSelector": {"matchLabels": {"vm.kubevirt.io/name": description.name}}, "policyTypes": kinds, **spec} if kinds else None
    return MachineFirewall(spec, tuple(limits))


def _read(network: NetworkPayload) -> tuple[FirewallConfig | None, NetworkIsolation | None]:
    """The firewall and the isolation of a card, where they ask for anything."""
    assert network.security
    try:
        rules = msgspec.convert(network.security.firewall, FirewallConfig) if network.security.firewall else None
        isolation = msgspec.convert(network.security.isolation, NetworkIsolation) if network.security.isolation else None
    except msgspec.ValidationError as error:
        raise refusals.invalid(f"networks[{network.name}].Security is invalid", why=str(error)) from None
    return (
        rules if rules is not None and rules.enabled else None,
        isolation if isolation is not None and isolation.mode in ("strict", "custom") else None,
    )


# --- firewalls --------------------------------------------------------------------------------------------------------------


def _of_firewall(firewall_config: FirewallConfig, where: str, limits: list[str]) -> Data:
    made: Data = {}
    for direction, (_, member, *_) in _SIDES.items():
        rules = [each for each in firewall_config.rules or () if each.direction in (direction, "inout")]
        allowed = (
            _closed(rules, direction, where, limits)
            if firewall_config.defaultPolicy != "ACCEPT"
            else _open(rules, direction, where, limits)
        )
        if allowed is not None:
            made[member] = allowed
    if firewall_config.defaultPolicy == "REJECT" or any(each.action == "REJECT" for each in firewall_config.rules or ()):
        limits.append(f"{where}.Firewall: what is rejected is dropped, without an answer")
    return made


def _open(rules: list[FirewallRule], direction: str, where: str, limits: list[str]) -> list[Data] | None:
    """All but what rules deny."""
    denied = list(_denied(rules, direction, where, limits))
    return [{_SIDES[direction][2]: [_block(_EVERYWHERE, denied)]}] if denied else None


def _closed(rules: list[FirewallRule], direction: str, where: str, limits: list[str]) -> list[Data]:
    """Nothing but what rules allow."""
    denied = list(_denied(rules, direction, where, limits))
    _, _, peers, near, far = _SIDES[direction]
    made = []
    for rule in rules:
        if rule.action != "ACCEPT":
            continue
        ports = list(_ports(rule))
        if getattr(rule, far) or rule.protocol == "icmp":
            limits.append(f"{where}.Firewall: rule {rule.name} has no form as a NetworkPolicy, and allows nothing")
            continue
        network = getattr(rule, near)
        entry: Data = {peers: [_block(network or _EVERYWHERE, denied)]} if network or denied else {}
        made.append({**entry, **({"ports": ports} if ports else {})})
    return made


def _denied(rules: list[FirewallRule], direction: str, where: str, limits: list[str]) -> Iterator[str]:
    _, _, _, near, far = _SIDES[direction]
    for rule in rules:
        if rule.action == "ACCEPT":
            continue
        network = getattr(rule, near)
        if rule.ports is not None or rule.protocol not in (None, "all") or getattr(rule, far) or not _is_network(network or _EVERYWHERE):
            limits.append(f"{where}.Firewall: rule {rule.name} denies more narrowly than a NetworkPolicy can, and has no effect")
            continue
        yield network or _EVERYWHERE


def _ports(rule: FirewallRule) -> Iterator[Data]:
    for protocol in _PROTOCOLS.get(rule.protocol or "all", ()):
        if rule.ports is not None:
            end = {"endPort": rule.ports.end} if rule.ports.end and rule.ports.end > rule.ports.start else {}
            yield {"protocol": protocol, "port": rule.ports.start, **end}
        elif rule.protocol in ("tcp", "udp"):
            yield {"protocol": protocol}


def _block(network: str, denied: list[str]) -> Data:
    """An address block without what is denied. One that is denied as a whole has no address left."""
    of = ipaddress.ip_network(network, strict=False)
    holes = [ipaddress.ip_network(each, strict=False) for each in denied]
    inside = sorted({str(each) for each in holes if each.version == of.version and each.subnet_of(of)})  # type: ignore[arg-type]
    if any(each.version == of.version and of.subnet_of(each) for each in holes):  # type: ignore[arg-type]
        return {"ipBlock": {"cidr": "255.255.255.255/32"}}
    return {"ipBlock": {"cidr": str(of), **({"except": inside} if inside else {})}}


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True


# --- isolation --------------------------------------------------------------------------------------------------------------


def _of_isolation(network_isolation: NetworkIsolation, where: str, limits: list[str]) -> Data:
    allowed, denied = list(network_isolation.allowedNetworks or ()), list(network_isolation.deniedNetworks or ())
    names = [each for each in (*allowed, *denied) if not _is_network(each)]
    limits += [f"{where}.Isolation: {name} is no address block, and names of networks have no form here" for name in names]
    denied = [each for each in denied if _is_network(each)]
    blocks = [_block(each, denied) for each in allowed if _is_network(each)]
    if not blocks and network_isolation.mode == "custom":
        blocks = [_block(_EVERYWHERE, denied)]
    return {member: [{peers: blocks}] if blocks else [] for _, member, peers, *_ in _SIDES.values()}


# --- at the target ----------------------------------------------------------------------------------------------------------


class FirewallControl:
    """Keeps the NetworkPolicies of machines."""

    def __init__(self, cluster: TargetCluster) -> None:
        self._cluster = cluster

    async def keep(self, machine: VirtualMachine, machine_firewall: MachineFirewall) -> None:
        """Make, change or delete the policy of a machine. It is there before the machine is started."""
        key = Key(self._cluster.namespace, f"{machine.metadata.name}-firewall")
        client = self._cluster.client
        found = await self._cluster.client.find(targets.POLICIES, key)
        if found is None and machine_firewall.spec is not None:
            metadata = {"name": key.name, "namespace": key.namespace, "ownerReferences": [owner_reference(machine)]}
            body = {
                "apiVersion": targets.POLICIES.api_version,
                "kind": targets.POLICIES.kind,
                "metadata": metadata,
                "spec": machine_firewall.spec,
            }
            try:
                await client.create(targets.POLICIES, body, key.namespace)
            except AlreadyExists as error:
                raise refusals.retry_later(f"NetworkPolicy {key.name} was made in the same moment") from error
            return
        if found is None:
            return
        owners: list[Any] = found["metadata"].get("ownerReferences") or []
        if not any(each.get("uid") == machine.metadata.uid for each in owners):
            if machine_firewall.spec is not None:
                raise refusals.conflict(f"NetworkPolicy {key.name} exists and is not the machine's", fix="delete or rename it")
            return
        if machine_firewall.spec is None:
            await client.delete(targets.POLICIES, key, DeletionOptions(uid=found["metadata"]["uid"]))
        elif found.get("spec") != machine_firewall.spec:
            await client.patch_raw(targets.POLICIES, key, json_patch([{"op": "replace", "path": "/spec", "value": machine_firewall.spec}]))
