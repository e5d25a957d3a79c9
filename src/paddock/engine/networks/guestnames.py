"""The names of machines: HOST.GROUP.vm.ZONE, and HOST.DOMAIN where a card says its domain; and where short names are looked for. Pure."""

from paddock.engine.networks.nics import NicSpec


def own_names(nic: NicSpec, suffix: str) -> tuple[str, ...]:
    """The names of a card's machine."""
    host = nic.hostname.lower()
    if not host:
        return ()
    found = [f"{host}.{nic.domain.lower()}"] if nic.domain else []
    if nic.group:
        found.append(f"{host}.{nic.group}.vm.{suffix}")
    return tuple(found)


def search(group: str, suffix: str) -> tuple[str, ...]:
    """Return the search domains of a machine of a group: Services first, as in a cluster, then machines."""
    own = (f"{group}.svc.{suffix}",) if group else ()
    machines = (f"{group}.vm.{suffix}",) if group else ()
    return (*own, f"svc.{suffix}", suffix, *machines, f"vm.{suffix}")
