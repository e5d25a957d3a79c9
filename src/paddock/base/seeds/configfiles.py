"""The keys of config maps, secrets, service accounts and the downward API as files of a disk labelled `cfgdata`, or as its volume says."""

from collections.abc import Mapping

from paddock.base.seeds.seed import Seed

LABEL = "cfgdata"


def config_map(data: Mapping[str, str], binary: Mapping[str, bytes], label: str = "") -> Seed:
    """The keys of a ConfigMap; no key is in both of its halves."""
    return Seed(label or LABEL, {**{key: text.encode(errors="surrogatepass") for key, text in data.items()}, **binary})


def secret(data: Mapping[str, bytes], label: str = "") -> Seed:
    """The keys of a Secret."""
    return Seed(label or LABEL, dict(data))


def service_account(namespace: str, token: str, authority: bytes) -> Seed:
    """Return the files that a program needs to call the API as a service account."""
    return Seed(LABEL, {"namespace": namespace.encode(), "token": token.encode(), "ca.crt": authority})


def downward(values: Mapping[str, bytes], label: str = "") -> Seed:
    """Facts about the machine, each at the path that its volume says; see `downward.py` for how they are written."""
    return Seed(label or LABEL, {path.removeprefix("./"): value for path, value in values.items()})
