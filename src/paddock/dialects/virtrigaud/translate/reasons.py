"""Reasons why a value of VirtRigaud's objects does not reach KubeVirt, by the beginning of its path below the spec; the first match
counts. docs/design/0003-virtrigaud-on-kubevirt.md is the same table for people."""

from paddock.dialects.virtrigaud.translate.account import Reason, Reasons

_HOOK: Reason = ("KubeVirt runs nothing around power changes", "nothing is run; let the guest's own services do it")

OF_MACHINES: Reasons = (
    (
        ("placement",),
        ("it is a place at another hypervisor; KubeVirt schedules by the labels of nodes", "the machine runs on any node that fits"),
    ),
    (
        ("placementRef",),
        ("KubeVirt has no placement policies", "the machine runs on any node; give affinity or tolerations in its template"),
    ),
    (
        ("snapshot",),
        ("going back to a snapshot is an operation and no property of a KubeVirt machine", "create a VirtualMachineRestore"),
    ),
    (("lifecycle", "preStop"), _HOOK),
    (("lifecycle", "postStart"), _HOOK),
    (("resources", "gpu", "memory"), ("KubeVirt names devices and not their memory", "name a device that has as much as its type")),
    (("importedDisk", "path"), ("a disk of KubeVirt is a claim", "the claim is named by diskID; what lies at the path is not read")),
    (("importedDisk", "format"), ("the disk in a claim is raw", "convert the disk when it is brought into the claim")),
    (("importedDisk", "sizeGiB"), ("the claim is there already, with its size", "the claim's size counts")),
    (("importedDisk",), ("it says where the disk came from", "nothing depends on it")),
)
_MEDIUM: Reason = ("what a disk lies on is a property of its StorageClass", "name a StorageClass of that kind")
_MHZ: Reason = ("KubeVirt counts processors and not MHz", "set resources.requests.cpu or resources.limits.cpu in the template")
OF_CLASSES: Reasons = (
    (("diskDefaults", "type"), _MEDIUM),
    (("diskDefaults", "storageClass"), ("no disk of the machine is made in it", "it is not used")),
    (("diskDefaults", "iops"), ("KubeVirt does not limit operations", "use a StorageClass that does")),
    (("guestToolsPolicy",), ("KubeVirt installs nothing in a guest", "the image's guest agent is used if there is one")),
    (("resourceLimits", "cpuShares"), ("KubeVirt weighs machines by what they request", "set resources.requests.cpu in the template")),
    (("resourceLimits", "cpuLimit"), _MHZ),
    (("resourceLimits", "cpuReservation"), _MHZ),
    (
        ("performanceProfile", "latencySensitivity"),
        ("KubeVirt pins processors or does not", "the machine shares the processors with others"),
    ),
    (
        ("performanceProfile", "virtualizationBasedSecurity"),
        ("KubeVirt has no switch for it", "give nestedVirtualization, secureBoot and tpmEnabled, and switch it on in the guest"),
    ),
    (("performanceProfile", "hyperThreadingPolicy"), ("the nodes decide how threads are shared", "the nodes' setting counts")),
    (("securityProfile", "vtdEnabled"), ("KubeVirt gives guests no IOMMU", "the guest has none")),
    (
        ("securityProfile", "encryptionPolicy"),
        ("KubeVirt leaves encryption to the storage", "name a StorageClass that encrypts"),
    ),
    (("extraConfig",), ("it is a setting of another hypervisor", "it has no effect")),
)
_TEMPLATE: Reason = ("it is at another hypervisor, out of KubeVirt's reach", "the root disk comes from elsewhere")
_PREPARED: Reason = ("a DataVolume is imported when the machine is made, as long as it takes", "CDI's own settings count")
OF_IMAGES: Reasons = (
    (("source", "libvirt", "storagePool"), ("it is a pool of libvirt", "set diskDefaults.storageClass in the class")),
    (("source", "libvirt", "path"), _TEMPLATE),
    (("source", "libvirt", "format"), ("CDI finds the format out by itself", "the format that is found counts")),
    (("source", "registry", "format"), ("CDI finds the format out by itself", "the format that is found counts")),
    (("source", "http", "timeout"), ("an import has no time limit", "it goes on until it succeeds or is deleted")),
    (
        ("source", "http", "authentication"),
        ("CDI reads credentials under names of its own", "the Secret has to have them under those"),
    ),
    (("source", "http"), ("the root disk has one source, and this is not it", "it is not used")),
    (("source", "registry"), ("the root disk has one source, and this is not it", "it is not used")),
    (("source", "dataVolume"), ("the root disk has one source, and this is not it", "it is not used")),
    (("source",), _TEMPLATE),
    (
        ("prepare", "validateChecksum"),
        ("KubeVirt compares an image with the checksum it has", "the image is imported without one"),
    ),
    (("prepare", "storage"), ("CDI keeps the image where the StorageClass says, as raw", "the StorageClass counts")),
    (("prepare", "optimization"), ("CDI does not change what it imports", "the image is used as it is")),
    (("prepare",), _PREPARED),
)
_RATE: Reason = ("it is a limit of another hypervisor's network", "give qos.ingressLimit and qos.egressLimit")
_OTHER_BLOCK: Reason = ("the network has one form, and this is another provider's", "it is not used")
_SPANNING_TREE: Reason = ("the bridge plugin leaves the spanning tree alone", "set the bridge up on the nodes")
OF_NETWORKS: Reasons = (
    (("network", "vsphere", "distributedSwitch"), ("nodes have bridges and no distributed switches", "the bridge is used")),
    (("network", "vsphere", "trafficShaping"), _RATE),
    (("network", "proxmox", "rateLimit"), _RATE),
    (
        ("network", "vsphere", "security", "allowMACChanges"),
        ("the bridge plugin checks the senders of packets only", "set allowForgedTransmits to false for that"),
    ),
    (("network", "vsphere", "vlan"), ("the bridge plugin knows one VLAN or a trunk", "the network is not tagged")),
    (("network", "proxmox", "firewall"), ("nodes have no firewall of Proxmox", "use NetworkPolicies")),
    (("network", "libvirt", "filterRef"), ("nodes have no filters of libvirt", "use NetworkPolicies")),
    (
        ("network", "libvirt", "driver", "queues"),
        ("KubeVirt gives a card as many queues as the machine has processors", "the card has several queues"),
    ),
    (("network", "libvirt", "driver"), ("KubeVirt chooses the driver of a card", "virtio cards use vhost where nodes have it")),
    (("network", "libvirt", "bridge", "stp"), _SPANNING_TREE),
    (("network", "libvirt", "bridge", "delay"), _SPANNING_TREE),
    (("network", "libvirt", "bridge"), ("the card is behind the node's address and on no bridge", "it is not used")),
    (("network", "libvirt", "networkName"), ("the bridge is given, too", "the bridge counts")),
    (
        ("network", "vsphere", "pciSlotNumber"),
        ("vSphere counts slots in its own way", "set pciAddress of the card in the template where names have to stay"),
    ),
    (("network", "vsphere"), _OTHER_BLOCK),
    (("network", "libvirt"), _OTHER_BLOCK),
    (("network", "proxmox"), _OTHER_BLOCK),
    (("ipAllocation", "poolConfig"), ("there are no address pools here", "the guest asks DHCP")),
    (("ipAllocation", "dhcpConfig"), ("what a guest says to DHCP is its own choice", "configure it in the guest's user data")),
    (("ipAllocation",), ("the addresses of this network are not the cluster's to give", "the guest asks DHCP")),
    (("security",), ("KubeVirt leaves it to the cluster's network", "use NetworkPolicies and the network plugin's own settings")),
    (("qos",), ("the bandwidth plugin limits rates only", "traffic is not marked and has no priority")),
    (("metadata",), ("the network becomes no object that could carry it", "nothing depends on it")),
)
OF_PROVIDERS: Reasons = (
    (
        ("defaults",),
        ("it is a place at another hypervisor; KubeVirt schedules by the labels of nodes", "machines run on any node that fits"),
    ),
)
