"""The object of the server loads: one VirtualMachine of about 2.4 KB, as a user writes it."""

import json
from typing import Any

NAMESPACE = "bench"
COLLECTION = f"/apis/kubevirt.io/v1/namespaces/{NAMESPACE}/virtualmachines"
# As many label values as make each of them match one object of a hundred.
GROUPS = 100

_CLOUD_INIT = """#cloud-config
hostname: fedora
users:
  - name: fedora
    sudo: ALL=(ALL) NOPASSWD:ALL
    ssh_authorized_keys:
      - ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2mCfY7tVnqjcVZz9tKQhXwq1rF0s3mBvE5uW8yPzLd operator@example.com
packages: [qemu-guest-agent, nginx, vim]
write_files:
  - path: /etc/motd
    content: this machine belongs to the load test
runcmd:
  - [systemctl, enable, --now, qemu-guest-agent]
  - [systemctl, enable, --now, nginx]
"""


def machine(number: int, prefix: str = "vm") -> dict[str, Any]:
    """A machine of its own name."""
    name = f"{prefix}-{number:06d}"
    labels = {"kubevirt.io/vm": name, "app": "web", "tier": "front", "group": f"g{number % GROUPS}"}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": labels,
            "annotations": {"example.com/owner": "team-blue", "example.com/ticket": "OPS-4711"},
        },
        "spec": {"runStrategy": "Manual", "dataVolumeTemplates": [_disk(name)], "template": _template(name, number)},
    }


def body(number: int, prefix: str = "vm") -> bytes:
    """The machine as a client sends it."""
    return json.dumps(machine(number, prefix), separators=(",", ":")).encode()


def _disk(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": f"{name}-root", "labels": {"app": "web"}},
        "spec": {
            "source": {"registry": {"url": "docker://quay.io/containerdisks/fedora:40"}},
            "storage": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}, "storageClassName": "local"},
        },
    }


def _mac(number: int) -> str:
    """An address of its own: the server looks for machines that share one."""
    return "02:00:" + ":".join(f"{each:02x}" for each in number.to_bytes(4, "big"))


def _template(name: str, number: int) -> dict[str, Any]:
    disks = [
        {"name": "root", "bootOrder": 1, "disk": {"bus": "virtio"}},
        {"name": "cloudinit", "disk": {"bus": "virtio"}},
        {"name": "data", "cache": "none", "disk": {"bus": "virtio"}},
    ]
    interfaces = [
        {"name": "default", "masquerade": {}, "model": "virtio", "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]},
        {"name": "backend", "bridge": {}, "macAddress": _mac(number)},
    ]
    return {
        "metadata": {"labels": {"kubevirt.io/vm": name, "app": "web"}, "annotations": {"example.com/note": "load"}},
        "spec": {
            "domain": {
                "cpu": {"cores": 2, "sockets": 1, "threads": 1, "model": "host-model"},
                "memory": {"guest": "2Gi"},
                "devices": {"disks": disks, "interfaces": interfaces, "rng": {}, "autoattachGraphicsDevice": False},
                "features": {"acpi": {}, "smm": {"enabled": True}},
                "firmware": {"bootloader": {"efi": {"secureBoot": True}}},
                "resources": {"requests": {"memory": "2Gi", "cpu": "500m"}, "limits": {"memory": "3Gi"}},
            },
            "networks": [{"name": "default", "pod": {}}, {"name": "backend", "multus": {"networkName": "bench/backend"}}],
            "terminationGracePeriodSeconds": 60,
            "evictionStrategy": "None",
            "nodeSelector": {"kubernetes.io/arch": "amd64"},
            "tolerations": [{"key": "load", "operator": "Exists", "effect": "NoSchedule"}],
            "volumes": [
                {"name": "root", "dataVolume": {"name": f"{name}-root"}},
                {"name": "cloudinit", "cloudInitNoCloud": {"userData": _CLOUD_INIT}},
                {"name": "data", "emptyDisk": {"capacity": "5Gi"}},
            ],
        },
    }
