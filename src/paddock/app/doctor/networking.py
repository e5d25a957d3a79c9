"""Judgement of the tools, rights and ranges that networks of machines need. Pure."""

from paddock.app.doctor.check import HostChange, Judgement, broken, limited, load, ok
from paddock.app.doctor.facts import DoctorFacts

_USER_MODE = (
    "machines use QEMU's user-mode network: they reach out, and are reached by forwarded ports and Services, "
    "but have no address of their own"
)
_MISSING = "addresses of machines' own"


def network_rights(facts: DoctorFacts) -> Judgement:
    """The right to make bridges, taps and rules."""
    user = facts.user
    refused = facts.network.rootless
    if not user.is_root and not refused:
        return ok("bridges, taps and packet filters can be made in a network namespace of this user")
    if user.has_network_rights:
        return ok("bridges, taps and packet filters can be made")
    if user.is_root:
        fix = "give the container the capability NET_ADMIN, or choose user mode: paddock up --network user"
        return broken("this root may not administer networks", "the server retries, and starts no machines", fix, "networks")
    fix = facts.network.rootless_fix
    missing = f"{_MISSING} ({refused}; to lift it: {fix})"
    return limited(f"no network namespace: {refused}", _USER_MODE, f"{fix}; or run Paddock as root", missing)


def nft(facts: DoctorFacts) -> Judgement:
    """The program that sets packet filters."""
    if facts.tools.nft:
        return ok(facts.tools.nft)
    if not facts.user.is_root:
        return ok("not needed in user mode")
    return limited("there is no nft on this host", _USER_MODE, "install it (on Debian: apt install nftables)", _MISSING)


def tun(facts: DoctorFacts) -> Judgement:
    """The device that makes taps."""
    state = facts.network.tun
    if not facts.user.is_root:
        return ok("not needed in user mode")
    if state == "usable":
        return ok("/dev/net/tun can be opened")
    if state == "absent":
        fix = "load the kernel module: modprobe tun"
        return limited("there is no /dev/net/tun", _USER_MODE, fix, _MISSING, load(facts, "tun"))
    fix = "give the container the device: docker run --device /dev/net/tun"
    return limited("/dev/net/tun cannot be opened", _USER_MODE, fix, _MISSING)


def bridge(facts: DoctorFacts) -> Judgement:
    if not facts.user.is_root:
        return ok("not needed in user mode; elsewhere network-rights tried one")
    if facts.network.bridge is False:
        effect = "the server retries, and starts no machines on routed networks"
        return broken("the kernel has no bridges", effect, "load the kernel module: modprobe bridge", "networks")
    return ok("the kernel has bridges" if facts.network.bridge else "not tried")


def reverse_path(facts: DoctorFacts) -> Judgement:
    """The check of sources, which must not be strict."""
    if facts.network.reverse_path != 1 or not facts.user.is_root:
        return ok("sources of packets are not checked strictly")
    change = HostChange(("sysctl", "-w", "net.ipv4.conf.all.rp_filter=2"), "set net.ipv4.conf.all.rp_filter to 2, until the host restarts")
    effect = "machines cannot ask for their gateway, so the server starts none"
    fix = "sysctl -w net.ipv4.conf.all.rp_filter=2, or choose user mode: paddock up --network user"
    return broken("net.ipv4.conf.all.rp_filter is 1", effect, fix, "networks", change)


def passt(facts: DoctorFacts) -> Judgement:
    """The program of interfaces that are bound by passt."""
    if facts.tools.passt:
        return ok(facts.tools.passt)
    effect = "interfaces with the binding passt cannot be plugged; all others work"
    return limited("there is no passt on this host", effect, "install it (on Debian: apt install passt)")


def namespaces(facts: DoctorFacts) -> Judgement:
    """Namespaces of machines' own."""
    why = facts.network.namespaces
    if not why:
        return ok("each QEMU gets namespaces of its own")
    if not facts.user.is_root:
        effect = "every QEMU runs as this user and sees the host's processes and network"
        return limited("Paddock does not run as root", effect, "run Paddock as root where guests are not trusted")
    fix = "install util-linux, or give the container the capability SYS_ADMIN"
    return limited(f"namespaces cannot be made: {why}", "every QEMU sees the host's processes and network", fix)


def forwarding(facts: DoctorFacts) -> Judgement:
    if not facts.network.forward_dropped or not facts.user.is_root:
        return ok("no other packet filter is known to drop what machines send")
    effect = "machines cannot reach other hosts: a filter that drops has the last word"
    fix = "allow their bridge, for Docker: iptables -I DOCKER-USER -j ACCEPT"
    return limited("the filter chain FORWARD drops packets (Docker sets it so)", effect, fix, "machines' way to other hosts")


def libvirt_network(facts: DoctorFacts) -> Judgement:
    ranges = facts.network.libvirt
    if not ranges:
        return ok("libvirt has no network here")
    return ok(f"libvirt uses {', '.join(ranges)}; Paddock chooses another range, and --pod-network must, too")
