"""The table for volumes, networks, placement and life; and for annotations, which are no fields."""

from paddock.kubevirt.translate.limits import Code
from tools.kubevirtsupport.devices import CLAIMS
from tools.kubevirtsupport.row import SupportRow, card, volume

_LAYER = '"drive":"b-v.'

VOLUMES = (
    SupportRow("volumes[].name", "volumes", "Joins volume and disk; a volume without a disk gets one."),
    SupportRow("volumes[].dataVolume.name", "volumes", "The claim that the DataVolume fills.", volume(dataVolume={"name": "x"}), _LAYER),
    SupportRow("volumes[].dataVolume.hotpluggable", "volumes", "Comes and goes while the machine runs, also as the medium of a drive."),
    SupportRow(
        "volumes[].persistentVolumeClaim.claimName",
        "volumes",
        "The claim's disk.",
        volume(persistentVolumeClaim={"claimName": "x"}),
        _LAYER,
    ),
    SupportRow("volumes[].persistentVolumeClaim.readOnly", "volumes", "It is only read."),
    SupportRow(
        "volumes[].persistentVolumeClaim.hotpluggable", "volumes", "Comes and goes while the machine runs, also as the medium of a drive."
    ),
    SupportRow(
        "volumes[].containerDisk.**",
        "volumes",
        "A layer over the image, gone when the machine stops.",
        volume(containerDisk={"image": "x"}),
        _LAYER,
    ),
    SupportRow("volumes[].cloudInitNoCloud.**", "seed disk", "A disk labelled cidata.", volume(cloudInitNoCloud={"userData": "x"}), _LAYER),
    SupportRow(
        "volumes[].cloudInitConfigDrive.**",
        "seed disk",
        "A disk labelled config-2.",
        volume(cloudInitConfigDrive={"userData": "x"}),
        _LAYER,
    ),
    SupportRow("volumes[].emptyDisk.capacity", "volumes", "An empty disk of this size.", volume(emptyDisk={"capacity": "1Gi"}), _LAYER),
    SupportRow(
        "volumes[].ephemeral.**",
        "volumes",
        "A layer over the claim, gone when the machine stops.",
        volume(ephemeral={"persistentVolumeClaim": {"claimName": "x"}}),
        _LAYER,
    ),
    SupportRow(
        "volumes[].hostDisk.**",
        "volumes",
        "A file of the host, in a directory that is allowed.",
        volume(hostDisk={"path": "/x", "type": "Disk"}),
        _LAYER,
    ),
    SupportRow("volumes[].sysprep.**", "seed disk", "A disk labelled unattendCD.", volume(sysprep={"secret": {"name": "x"}}), _LAYER),
    SupportRow("volumes[].configMap.**", "seed disk", "A disk with its keys as files.", volume(configMap={"name": "x"}), _LAYER),
    SupportRow("volumes[].secret.**", "seed disk", "A disk with its keys as files.", volume(secret={"secretName": "x"}), _LAYER),
    SupportRow(
        "volumes[].serviceAccount.serviceAccountName",
        "seed disk",
        "A disk with its token.",
        volume(serviceAccount={"serviceAccountName": "x"}),
        _LAYER,
    ),
    SupportRow("volumes[].downwardAPI.**", "seed disk", "A disk with facts of the machine.", volume(downwardAPI={"fields": []}), _LAYER),
    SupportRow(
        "volumes[].downwardMetrics", "no effect", "Metrics of the host stay with it.", volume(downwardMetrics={}), Code.METRICS_MISSING
    ),
    SupportRow(
        "volumes[].memoryDump.**",
        "volumes",
        "Where a dump of the memory is written; no disk of the guest.",
        volume(memoryDump={"claimName": "x"}),
        lacks=_LAYER,
    ),
)

NETWORKS = (
    SupportRow("networks[].name", "networks", "Joins network and card."),
    SupportRow("networks[].pod", "networks", "The default network.", card(), '"netdev":"n-default"'),
    SupportRow("networks[].pod.vmNetworkCIDR", "networks", "The guest's own network under masquerade."),
    SupportRow("networks[].pod.vmIPv6NetworkCIDR", "networks", "The same for IPv6, where the host has it."),
    SupportRow("networks[].multus.**", "networks", "A bridge of the host, by its NetworkAttachmentDefinition."),
    SupportRow(
        "networks[].resourceClaim.**",
        "refused",
        "No DRA.",
        {**card(network={"resourceClaim": {"claimName": "c", "requestName": "r"}}, sriov={}), **CLAIMS},
        Code.CLAIM_REFUSED,
    ),
)

LIFE = (
    SupportRow("hostname", "networks", "Told by DHCP and cloud-init."),
    SupportRow("subdomain", "networks", "The guest's domain, by DHCP; names of a headless Service."),
    SupportRow("architecture", "QEMU", "amd64 or arm64; another than the host's is emulated.", {"architecture": "arm64"}, "-machine virt,"),
    SupportRow(
        "architecture",
        "refused",
        "There is no QEMU for it.",
        {"architecture": "arm64"},
        Code.ARCHITECTURE_MISSING,
        host={"architectures": frozenset({"amd64"})},
    ),
    SupportRow("terminationGracePeriodSeconds", "life cycle", "Time between the power button and the end."),
    SupportRow("evictionStrategy", "life cycle", "Stored; there is no second node."),
    SupportRow(
        "startStrategy",
        "QEMU",
        "Paused: it waits for unpause, and the boot menu is shown.",
        {"startStrategy": "Paused"},
        "menu=on,splash-time=10000",
    ),
    SupportRow("accessCredentials[].sshPublicKey.source.**", "guest agent", "The keys."),
    SupportRow("accessCredentials[].sshPublicKey.propagationMethod.noCloud", "seed disk", "By cloud-init."),
    SupportRow("accessCredentials[].sshPublicKey.propagationMethod.configDrive", "seed disk", "By cloud-init."),
    SupportRow(
        "accessCredentials[].sshPublicKey.propagationMethod.qemuGuestAgent.**",
        "guest agent",
        "While it runs, and again when the Secret changes.",
    ),
    SupportRow("accessCredentials[].userPassword.**", "guest agent", "While it runs, and again when the Secret changes."),
    SupportRow("livenessProbe.**", "life cycle", "Ends the machine when it fails."),
    SupportRow("readinessProbe.**", "life cycle", "Decides whether the machine is Ready."),
    SupportRow("nodeSelector", "placement", "Compared with the labels of the one Node."),
    SupportRow("affinity.**", "placement", "Required terms are held; preferences decide nothing."),
    SupportRow("tolerations[].**", "placement", "Compared with the taints of the one Node."),
    SupportRow("topologySpreadConstraints[].**", "placement", "Held where they say DoNotSchedule."),
    SupportRow("priorityClassName", "placement", "Has to exist; decides the order of starts."),
    SupportRow("schedulerName", "no effect", "There is one node, and nothing to choose."),
    SupportRow("serviceAccountName", "no effect", "A volume names the account whose token it holds."),
    SupportRow("dnsPolicy", "networks", "Decides what DHCP tells; `Default` keeps the name server of the network, which asks the host's."),
    SupportRow(
        "dnsConfig.nameservers",
        "networks",
        "DHCP and DHCPv6 tell those of their family; QEMU's user-mode network does not, and says so.",
    ),
    SupportRow("dnsConfig.searches", "networks", "DHCP tells them, after those of the policy."),
    SupportRow(
        "dnsConfig.options[].**",
        "no effect",
        "DHCP has no word for them: on a cluster they reach the launcher, not the guest.",
        {"dnsConfig": {"options": [{"name": "ndots", "value": "2"}]}},
        Code.RESOLVER_OPTIONS,
    ),
    SupportRow(
        "resourceClaims[].**", "refused", "No DRA.", {"resourceClaims": [{"name": "c", "resourceClaimName": "c"}]}, Code.CLAIM_REFUSED
    ),
    SupportRow(
        "utilityVolumes[].**",
        "no effect",
        "Nothing here uses them.",
        {"utilityVolumes": [{"name": "u", "claimName": "c"}]},
        Code.UTILITY_IGNORED,
    ),
)

ANNOTATIONS = (
    SupportRow(
        "kubevirt.io/placePCIDevicesOnRootComplex", "QEMU", "true: no root ports, and nothing can be plugged in.", lacks="pcie-root-port"
    ),
    SupportRow("kubevirt.io/disablePCIHole64", "QEMU", "true: no PCI windows above the memory.", shows="q35-pcihost.pci-hole64-size=0"),
    SupportRow(
        "kubevirt.io/free-page-reporting-disabled",
        "QEMU",
        "true: the guest does not give free memory back.",
        shows='"free-page-reporting":false',
    ),
    SupportRow(
        "kubevirt.io/vga-display-efi-x86",
        "QEMU",
        "true: VGA for EFI, too.",
        {"domain.firmware.bootloader": {"efi": {"secureBoot": False}}},
        '"driver":"VGA"',
    ),
    SupportRow(
        "kubevirt.io/ignitiondata", "QEMU", "The text, by the firmware.", shows="-fw_cfg name=opt/com.coreos/config,file=/seeds/ignition"
    ),
    SupportRow("kubevirt.io/memfd", "no effect", "Memory that nobody shares is no file in any case."),
    SupportRow("hooks.kubevirt.io/hookSidecars", "refused", "There is no container that could change a machine's definition."),
    SupportRow("kubevirt.io/pause-guest-agent-probes", "life cycle", "true: the agent is not asked."),
    SupportRow(
        "kubevirt.io/keep-launcher-alive-after-failure", "no effect", "There is no launcher; the log of the last run stays in any case."
    ),
)

MACHINE = (
    SupportRow("runStrategy", "life cycle", "When the machine runs."),
    SupportRow("running", "life cycle", "The older word for runStrategy."),
    SupportRow("template.metadata.**", "life cycle", "Labels and annotations of the running machine."),
    SupportRow("dataVolumeTemplates[].**", "volumes", "DataVolumes that are made with the machine and go with it."),
    SupportRow("instancetype.**", "life cycle", "Sets processors and memory of the running machine; frozen when it is first used."),
    SupportRow("preference.**", "life cycle", "Fills what the machine leaves open; frozen when it is first used."),
    SupportRow("updateVolumesStrategy", "life cycle", "What a change of volumes means."),
)

ROWS = (*VOLUMES, *NETWORKS, *LIFE)
