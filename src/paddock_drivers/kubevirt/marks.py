"""Labels and annotations by which the driver knows its objects."""

import re

# The VirtualMachine of the manager that a machine belongs to: the uid as a label, to be found by; the name for people.
OWNER_UID = "virtrigaud.io/owner-uid"
OWNER = "virtrigaud.io/owner"
# The digest of the request that made an object whose owner is not known.
REQUEST = "virtrigaud.io/request"
# What the target does in another way than asked, as a JSON list of sentences.
LIMITATIONS = "virtrigaud.io/limitations"
# Size of each disk that the manager asked for, in GiB by the volume's name, as a JSON object. No other disk is ever detached.
DISKS = "virtrigaud.io/disks"
# On a claim that was grown: the size asked for at first and the request it stood for, both in bytes.
GROWTH = "virtrigaud.io/growth"
# On everything that the driver made beside machines: snapshot, restore, clone, image, disk.
PURPOSE = "virtrigaud.io/purpose"
DESCRIPTION = "virtrigaud.io/description"
CHECKSUM = "virtrigaud.io/checksum"
# The disk that a machine boots from.
BOOT_VOLUME = "virtrigaud.io/boot-volume"

OF_MACHINES = (OWNER_UID, OWNER, REQUEST, LIMITATIONS)
_MOST = 63


def object_name(*parts: str) -> str:
    """Return a name of Kubernetes made of texts that need not be one."""
    joined = re.sub(r"[^a-z0-9-]+", "-", "-".join(parts).lower()).strip("-")
    return joined[:_MOST].rstrip("-")


# What the bandwidth plugin reads from a Pod: bits in a second.
INGRESS_BANDWIDTH, EGRESS_BANDWIDTH = "kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth"
# The frequency of a node's processors in hertz, as KubeVirt tells it.
FREQUENCY = "cpu-timer.node.kubevirt.io/tsc-frequency"
