"""Behaviour of a Secret besides its schema (docs/spec/kube-api.md section 7)."""

import base64
import json
from collections.abc import Iterator

from paddock.base import base64data
from paddock.base.jsondata import Data
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.server.resources.strategy import Strategy, WriteContext

OPAQUE = "Opaque"
_ACCOUNT = "kubernetes.io/service-account.name"
_JSON_KEYS = {"kubernetes.io/dockerconfigjson": ".dockerconfigjson", "kubernetes.io/dockercfg": ".dockercfg"}
_RULE = "core/secret-type"


class SecretStrategy(Strategy):
    """Plain text is taken in and never given out."""

    def complete(self, new: Data) -> None:
        """Typed, and base64 throughout."""
        new["type"] = new.get("type") or OPAQUE
        if isinstance(data := new.get("data"), dict):
            new["data"] = {key: base64data.unfolded(text) if isinstance(text, str) else text for key, text in data.items()}
        plain = new.pop("stringData", None)
        if plain:
            coded = {key: base64.b64encode(text.encode()).decode() for key, text in plain.items()}
            new["data"] = {**(new.get("data") or {}), **coded}

    def warnings(self, new: Data, old: Data | None) -> Iterator[str]:
        """Certificates that no server could use."""
        if new["type"] == "kubernetes.io/tls":
            if _lacks_pem(new, "tls.crt"):
                yield "tls: failed to find any PEM data in certificate input"
            elif _lacks_pem(new, "tls.key"):
                yield "tls: failed to find any PEM data in key input"

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """Tokens name their account; registry credentials are JSON."""
        if new["type"] == "kubernetes.io/service-account-token" and not (new["metadata"].get("annotations") or {}).get(_ACCOUNT):
            yield finding.required(("metadata", "annotations", _ACCOUNT), _RULE)
        key = _JSON_KEYS.get(new["type"])
        text = (new.get("data") or {}).get(key) if key else None
        if key and text is not None and not _is_json(text):
            # The value itself is nobody's business.
            yield finding.secret_invalid(("data", key), "<secret contents redacted>: must be JSON", _RULE)


def _lacks_pem(data: Data, key: str) -> bool:
    try:
        return b"-----BEGIN " not in base64.b64decode((data.get("data") or {}).get(key) or "")
    except ValueError:
        return True


def _is_json(text: str) -> bool:
    try:
        json.loads(base64.b64decode(text))
    except ValueError:
        return False
    return True
