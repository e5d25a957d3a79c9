"""The transport security of a Provider: plain text, managed certificates or a Secret (docs/spec/virtrigaud.md 2.4 and 3.7)."""

from collections.abc import Mapping

import msgspec

from paddock.contract.tls import TlsMaterial
from paddock.dialects.virtrigaud.kinds.provider import Provider, ServiceTLS
from paddock.dialects.virtrigaud.plan.conditions import TLS, AspectValue, false, true
from paddock.kubernetes.meta.world import namespace_of

_FILES = ("tls.crt", "tls.key", "ca.crt")


class TransportChoice(msgspec.Struct, frozen=True):
    """The security of the connection to a program. `refused`: it has none, and the condition says why."""

    condition: AspectValue
    encrypted: bool = True
    # the certificates are Paddock's to make
    managed: bool = False
    # those of the Secret
    material: TlsMaterial | None = None
    # the manager verifies the provider's certificate
    verify: bool = True
    refused: bool = False


def block(provider: Provider) -> ServiceTLS | None:
    """The settings of the transport."""
    service = provider.spec.runtime.service
    return service.tls if service is not None else None


def secret_name(provider: Provider) -> str:
    """The Secret with the certificates; empty: there is none."""
    tls = block(provider)
    return tls.secretRef.name if tls is not None and tls.enabled and tls.secretRef is not None else ""


def choose(provider: Provider, secret: Mapping[str, bytes] | None, *, managed: bool = True) -> TransportChoice:
    """Decide. `secret` has the values of the Secret, None if there is no such Secret; `managed`: Paddock may make certificates."""
    tls = block(provider)
    if tls is not None and not tls.enabled:
        text = "spec.runtime.service.tls.enabled is false: the connection to the provider is not encrypted"
        return TransportChoice(false(TLS, "ExplicitlyDisabled", text), encrypted=False)
    verify = tls is None or not tls.insecureSkipVerify
    unverified = "" if verify else "; the provider's certificate is not verified (insecureSkipVerify)"
    name = secret_name(provider)
    if not name and managed:
        return TransportChoice(true(TLS, "Enabled", f"with managed certificates{unverified}"), managed=True, verify=verify)
    if not name:
        reason = "TLSBlockMissing" if tls is None else "SecretRefMissing"
        text = "managed certificates are off; name a Secret in spec.runtime.service.tls.secretRef"
        return _refused(reason, text)
    where = f"Secret {namespace_of(provider)}/{name}"
    if secret is None:
        return _refused("SecretNotFound", f"{where} of spec.runtime.service.tls.secretRef does not exist")
    missing = [each for each in _FILES if not secret.get(each)]
    if missing:
        return _refused("SecretIncomplete", f"{where} lacks {', '.join(missing)}")
    material = TlsMaterial(secret["tls.crt"], secret["tls.key"], secret["ca.crt"])
    return TransportChoice(true(TLS, "Enabled", f"with the certificates of {where}{unverified}"), material=material, verify=verify)


def _refused(reason: str, text: str) -> TransportChoice:
    return TransportChoice(false(TLS, reason, text), refused=True)
