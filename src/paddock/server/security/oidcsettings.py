"""Settings of an OpenID Connect provider. Options read them, so nothing here imports an HTTP client."""

from pathlib import Path

import msgspec


class OidcSettings(msgspec.Struct, frozen=True, kw_only=True):
    """An OpenID Connect provider and the meaning of its claims, under kube-apiserver's names."""

    issuer: str
    client: str
    authority: Path | None = None
    name_claim: str = "sub"
    # empty: the issuer, where the name is no mail address; "-": none
    name_prefix: str = ""
    groups_claim: str = ""
    groups_prefix: str = ""
    required: dict[str, str] = {}
    algorithms: tuple[str, ...] = ("RS256",)

    @property
    def prefix(self) -> str:
        """The prefix of user names."""
        if self.name_prefix:
            return "" if self.name_prefix == "-" else self.name_prefix
        return "" if self.name_claim == "email" else f"{self.issuer}#"
