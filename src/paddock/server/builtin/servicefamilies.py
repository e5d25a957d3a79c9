"""The families of a Service's addresses: how many it has, and which comes first (docs/spec/kube-api.md section 7). Pure."""

import ipaddress
from collections.abc import Iterator, Sequence
from typing import Literal

from paddock.base.jsondata import Data
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding

Family = Literal["IPv4", "IPv6"]
_RULE = "core/service"
_SINGLE, _REQUIRED = "SingleStack", "RequireDualStack"
_POLICY, _FAMILIES = ("spec", "ipFamilyPolicy"), ("spec", "ipFamilies")


def of(network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> Family:
    """Return the family of a network."""
    return "IPv6" if network.version == 6 else "IPv4"


def family_of(address: str) -> Family:
    """Return the family of an address."""
    return "IPv6" if ":" in address else "IPv4"


def given(spec: Data) -> list[str]:
    """Return the addresses that a Service says it has."""
    return list(spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else []))


def complete(spec: Data, before: Data, known: Sequence[Family]) -> None:
    """Fill in the policy and the families. `known`: the families of this server, the first of which is the default."""
    if spec["type"] == "ExternalName":
        return
    addresses = given(spec)
    # It leads where somebody else says, whatever the families there.
    is_free = addresses[:1] == ["None"] and not spec.get("selector")
    if not spec.get("ipFamilyPolicy"):
        spec["ipFamilyPolicy"] = _REQUIRED if is_free else _SINGLE
    is_single = spec["ipFamilyPolicy"] == _SINGLE
    if is_single and before.get("ipFamilyPolicy", _SINGLE) != _SINGLE:
        # The second of both goes, unless somebody changed them.
        for key in ("clusterIPs", "ipFamilies"):
            if spec.get(key) and spec[key] == before.get(key):
                spec[key] = spec[key][:1]
        addresses = given(spec)
    families: list[str] = list(spec.get("ipFamilies") or ())
    families += [family_of(address) for address in addresses[len(families) :] if address != "None"]
    families = families or [known[0]]
    # A family that the server got later comes when the policy asks for it anew.
    is_settled = spec["ipFamilyPolicy"] == before.get("ipFamilyPolicy") == "PreferDualStack" and families == before.get("ipFamilies")
    if not is_single and len(families) == 1 and (is_free or len(known) > 1) and not is_settled:
        families.append("IPv6" if families[0] == "IPv4" else "IPv4")
    spec["ipFamilies"] = families


def wrong(spec: Data, before: Data, known: Sequence[Family]) -> Iterator[Finding]:
    """Yield what the families, the addresses and the policy contradict each other in."""
    if spec.get("type") == "ExternalName":
        return
    addresses, families, policy = given(spec), spec.get("ipFamilies") or [], spec.get("ipFamilyPolicy")
    dual = "must be 'RequireDualStack' or 'PreferDualStack' when multiple"
    if policy == _SINGLE and len(addresses) > 1:
        yield finding.invalid(_POLICY, policy, f"{dual} cluster IPs are specified", _RULE)
    if policy == _SINGLE and len(families) > 1:
        yield finding.invalid(_POLICY, policy, f"{dual} IP families are specified", _RULE)
    if len(families) > len(set(families)):
        yield finding.duplicate((*_FAMILIES, 1), families[1], _RULE)
    for index, (address, family) in enumerate(zip(addresses, families, strict=False)):
        if address != "None" and (family_of(str(address)) == "IPv6") is not (family == "IPv6"):
            text = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            yield finding.invalid(("spec", "clusterIPs", index), addresses, text, _RULE)
    was, is_headless = given(before), addresses[:1] == ["None"]
    if len(was) > 1 and len(addresses) > 1 and was[1] != addresses[1]:
        yield finding.invalid(("spec", "clusterIPs", 1), addresses, "may not change once set", _RULE)
    if before.get("ipFamilies") and families[:1] != before["ipFamilies"][:1]:
        yield finding.invalid((*_FAMILIES, 0), families[:1], "may not change once set", _RULE)
    if is_headless and not spec.get("selector"):
        return
    if policy == _REQUIRED and len(known) < 2:
        yield finding.invalid(_POLICY, policy, "this cluster is not configured for dual-stack services", _RULE)
    for index, family in enumerate(families):
        if family not in known:
            yield finding.invalid((*_FAMILIES, index), family, "not configured on this cluster", _RULE)
