"""The existence and the usability of the objects that an http source refers to (docs/spec/kubermatic.md 1.3 and 3). Pure."""

from collections.abc import Callable, Iterator, Mapping

from paddock.kubevirt.kinds import pem
from paddock.kubevirt.kinds.datavolume import CertConfig, HttpSource

# What a Secret or a ConfigMap of this name holds; None: it is not there.
Held = Callable[[str], Mapping[str, bytes] | None]


def trouble(http: HttpSource, secret: Held, config_map: Held) -> tuple[str, str] | None:
    """Return the reason why the source cannot be used: one of the condition Ready, and a sentence; None when no obstacle is known."""
    return next(_troubles(http, secret, config_map), None)


def _troubles(http: HttpSource, secret: Held, config_map: Held) -> Iterator[tuple[str, str]]:
    for name in (http.secretRef, *(http.secretExtraHeaders or ())):
        if name and secret(name) is None:
            yield "SecretNotFound", f"the Secret {name} is not there"
    if http.certConfigMap:
        held = config_map(http.certConfigMap)
        if held is None:
            yield "ConfigMapNotFound", f"the ConfigMap {http.certConfigMap} is not there"
        elif not any(pem.bundle(value.decode(errors="replace")) for key, value in held.items() if key.endswith((".crt", ".pem"))):
            yield "InvalidCertificate", f"the ConfigMap {http.certConfigMap} has no PEM certificate in a key that ends with .crt or .pem"
    if http.certConfig is not None:
        yield from _of_config(http.certConfig, secret)


def _of_config(config: CertConfig, secret: Held) -> Iterator[tuple[str, str]]:
    if config.caBundle is not None and not pem.bundle(config.caBundle):
        yield "InvalidCertificate", "certConfig.caBundle is not a PEM bundle"
    if config.secretRef is not None:
        # One that holds a client's certificate need hold no authorities.
        alone = config.cert is None and config.key is None
        keys: tuple[str, ...] = (*pem.AUTHORITIES, *pem.CERTIFICATE) if alone else pem.AUTHORITIES
        yield from _of_secret(config.secretRef.name, keys, "CERTIFICATE", secret)
    for reference, keys, word in ((config.cert, pem.CERTIFICATE, "CERTIFICATE"), (config.key, pem.KEY, "PRIVATE KEY")):
        if reference is not None and reference.secretRef is not None:
            yield from _of_secret(reference.secretRef.name, keys, word, secret)


def _of_secret(name: str, keys: tuple[str, ...], word: str, secret: Held) -> Iterator[tuple[str, str]]:
    held = secret(name)
    if held is None:
        yield "SecretNotFound", f"the Secret {name} is not there"
        return
    text = pem.first(held, keys).decode(errors="replace")
    fine = pem.bundle(text) if word == "CERTIFICATE" else f"{word}-----" in text
    if not fine:
        yield "InvalidCertificate", f"the Secret {name} has no PEM {word.lower()} in {' or '.join(keys)}"
