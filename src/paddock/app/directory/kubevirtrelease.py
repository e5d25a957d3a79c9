"""The release of KubeVirt that a directory was used with: the KubeVirt object in its store says it. A newer one is an upgrade, as there."""

import orjson

from paddock.base.errors import Terminal
from paddock.dialects.kubevirt import gates, releases
from paddock.store.contract import Store, StoreKey

_OBJECT = StoreKey("kubevirts.kubevirt.io", "kubevirt", "kubevirt")


class NewerRelease(Terminal):
    """Objects may have fields that the release does not know."""


def check(store: Store, release: int) -> None:
    """Raise `NewerRelease` if a server of a newer release has written into the store. Nothing is changed."""
    stored = store.get(_OBJECT)
    if stored is None or not release:
        return
    installation = orjson.loads(stored.value)
    found = gates.of_installation(installation).release
    if (installation.get("status") or {}).get("observedKubeVirtVersion") and found > release:
        raise NewerRelease(
            f"cannot serve this directory as KubeVirt {releases.name_of(release)}",
            why=f"it was used as KubeVirt {releases.name_of(found)}, which KubeVirt cannot go back from either (nothing was changed)",
            fix="name another directory: --dir",
        )
