"""The cloud-init drive: what the guest reads from it."""

import hashlib
import re
from collections.abc import Mapping
from urllib.parse import unquote

from tests.kit.proxmox import drives, schema
from tests.kit.proxmox.content import Content
from tests.kit.proxmox.context import Park
from tests.kit.proxmox.formats import NAMED
from tests.kit.proxmox.inventory import Machine, Volume

SIZE = 4 << 20
OPTIONS = ("cicustom", "cipassword", "citype", "ciuser", "ciupgrade", "nameserver", "searchdomain", "sshkeys")


def is_option(name: str) -> bool:
    """Return True for an option that the drive is made from."""
    return name in OPTIONS or re.fullmatch(r"ipconfig\d+", name) is not None


def user_data(park: Park, machine: Machine, conf: Mapping[str, str]) -> str:
    """Return the user data: that of a snippet, or one made from the options."""
    if custom := _custom(park, machine, conf, "user"):
        return custom
    name = conf.get("name", f"VM{machine.vmid}")
    lines = ["#cloud-config", f"hostname: {name.partition('.')[0]}", "manage_etc_hosts: true", f"fqdn: {name}"]
    lines += [f"user: {conf['ciuser']}"] if "ciuser" in conf else []
    lines += ["disable_root: False"] if conf.get("ciuser") == "root" else []
    lines += [f"password: {conf['cipassword']}"] if "cipassword" in conf else []
    if keys := [each.strip() for each in unquote(conf.get("sshkeys", "")).splitlines() if each.strip()]:
        lines += ["ssh_authorized_keys:", *(f"  - {key}" for key in keys)]
    lines += ["chpasswd:", "  expire: False", "users:", "  - default"]
    lines += ["package_upgrade: true"] if conf.get("ciupgrade", "1") == "1" else []
    return "\n".join(lines) + "\n"


def network_data(park: Park, machine: Machine, conf: Mapping[str, str]) -> str:
    """Return the network configuration, version 1."""
    if custom := _custom(park, machine, conf, "network"):
        return custom
    lines = ["version: 1", "config:"]
    for number in sorted(int(name[3:]) for name in conf if re.fullmatch(r"net\d+", name)):
        net = drives.parse_net(conf[f"net{number}"])
        lines += ["    - type: physical", f"      name: eth{number}", f"      mac_address: '{net['macaddr'].lower()}'", "      subnets:"]
        lines += _subnets(schema.check_properties(NAMED["pve-qm-ipconfig"], conf.get(f"ipconfig{number}", "ip=dhcp")))
    if "nameserver" in conf:
        lines += ["    - type: nameserver", "      address:", *(f"      - '{each}'" for each in re.split("[ ,;]+", conf["nameserver"]))]
        lines += ["      search:", *(f"      - '{each}'" for each in re.split("[ ,;]+", conf.get("searchdomain", "")) if each)]
    return "\n".join(lines) + "\n"


def _subnets(config: Mapping[str, str]) -> list[str]:
    lines = []
    for family, word in (("ip", "4"), ("ip6", "6")):
        address = config.get(family, "")
        if address in ("dhcp", "auto"):
            lines.append(f"      - type: {'ipv6_slaac' if address == 'auto' else f'dhcp{word}'}")
        elif address:
            lines += ["      - type: static" + ("6" if word == "6" else ""), f"        address: '{address}'"]
            lines += [f"        gateway: '{config[gateway]}'"] if (gateway := f"gw{word}" if word == "6" else "gw") in config else []
    return lines


def meta_data(park: Park, machine: Machine, conf: Mapping[str, str]) -> str:
    """Return the meta-data, whose instance changes with the rest."""
    if custom := _custom(park, machine, conf, "meta"):
        return custom
    text = user_data(park, machine, conf) + network_data(park, machine, conf)
    return f"instance-id: {hashlib.sha1(text.encode()).hexdigest()}\n"


def _custom(park: Park, machine: Machine, conf: Mapping[str, str], part: str) -> str:
    volid = schema.check_properties(NAMED["pve-qm-cicustom"], conf.get("cicustom", "")).get(part, "")
    if not volid:
        return ""
    volume = park.volumes.get(volid, machine.node)
    return (volume.file or b"").decode()


def generate(park: Park, machine: Machine, conf: Mapping[str, str]) -> None:
    """Write the drive of a configuration anew, if it has one."""
    for drive in drives.drives(conf):
        if drive.is_cloudinit:
            volume = park.cluster.volume(drive.file, machine.node) or _remade(park, machine, drive)
            text = "".join(part(park, machine, conf) + "\0" for part in (user_data, network_data, meta_data))
            park.volumes.change(volume, Content(SIZE).written(0, text.encode()))


def _remade(park: Park, machine: Machine, drive: drives.Drive) -> Volume:
    """Make a drive again that is gone, as after a rollback to a snapshot from before its removal."""
    storage = park.cluster.activate(drive.storage, machine.node)
    name = drive.file.partition(":")[2].rpartition("/")[2]
    kind = name.rpartition(".")[2] if storage.is_file_based else "raw"
    return park.volumes.allocate(storage, machine.node, machine.vmid, Content(SIZE), kind, name)


def seen(park: Park, machine: Machine) -> tuple[str, str, str]:
    """Return what the drive holds now: user data, network configuration and meta-data."""
    drive = next(each for each in drives.drives(machine.conf) if each.is_cloudinit)
    user, network, meta, *_ = park.volumes.get(drive.file, machine.node).content.read(0, SIZE).decode().split("\0")
    return user, network, meta
