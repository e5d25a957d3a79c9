"""The table for volumes, networks, placement and life; and for annotations, which are no fields."""

from paddock.translate.machine.limits import Code
from paddock.translate.machine.support.row import Row, card, volume

_LAYER = '"drive":"b-v.'

VOLUMES = (
    Row("volumes[].name", "volumes", "Joins volume and disk; a volume without a disk gets one."),
    Row("volumes[].dataVolume.name", "volumes", "The claim that the DataVolume fills.", volume(dataVolume={"name": "x"}), _LAYER),
    Row("volumes[].dataVolume.hotpluggable", "volumes", "Was plugged in, and can be taken out."),
    Row(
        "volumes[].persistentVolumeClaim.claimName",
        "volumes",
        "The claim's disk.",
        volume(persistentVolumeClaim={"claimName": "x"}),
        _LAYER,
    ),
    Row("volumes[].persistentVolumeClaim.readOnly", "volumes", "It is only read."),
    Row("volumes[].persistentVolumeClaim.hotpluggable", "volumes", "Was plugged in, and can be taken out."),
    Row(
        "volumes[].containerDisk.**",
        "volumes",
        "A layer over the image, gone when the machine stops.",
        volume(containerDisk={"image": "x"}),
        _LAYER,
    ),
    Row("volumes[].cloudInitNoCloud.**", "seed disk", "A disk labelled cidata.", volume(cloudInitNoCloud={"userData": "x"}), _LAYER),
    Row(
        "volumes[].cloudInitConfigDrive.**",
        "seed disk",
        "A disk labelled config-2.",
        volume(cloudInitConfigDrive={"userData": "x"}),
        _LAYER,
    ),
    Row("volumes[].emptyDisk.capacity", "volumes", "An empty disk of this size.", volume(emptyDisk={"capacity": "1Gi"}), _LAYER),
    Row(
        "volumes[].ephemeral.**",
        "volumes",
        "A layer over the claim, gone when the machine stops.",
        volume(ephemeral={"persistentVolumeClaim": {"claimName": "x"}}),
        _LAYER,
    ),
    Row(
        "volumes[].hostDisk.**",
        "volumes",
        "A file of the host, in a directory that is allowed.",
        volume(hostDisk={"path": "/x", "type": "Disk"}),
        _LAYER,
    ),
    Row("volumes[].sysprep.**", "seed disk", "A disk labelled unattendCD.", volume(sysprep={"secret": {"name": "x"}}), _LAYER),
    Row("volumes[].configMap.**", "seed disk", "A disk with its keys as files.", volume(configMap={"name": "x"}), _LAYER),
    Row("volumes[].secret.**", "seed disk", "A disk with its keys as files.", volume(secret={"secretName": "x"}), _LAYER),
    Row(
        "volumes[].serviceAccount.serviceAccountName",
        "seed disk",
        "A disk with its token.",
        volume(serviceAccount={"serviceAccountName": "x"}),
        _LAYER,
    ),
    Row("volumes[].downwardAPI.**", "seed disk", "A disk with facts of the machine.", volume(downwardAPI={"fields": []}), _LAYER),
    Row("volumes[].downwardMetrics", "no effect", "Metrics of the host stay with it.", volume(downwardMetrics={}), Code.METRICS_MISSING),
    Row(
        "volumes[].memoryDump.**",
        "volumes",
        "Where a dump of the memory is written; no disk of the guest.",
        volume(memoryDump={"claimName": "x"}),
        lacks=_LAYER,
    ),
)

NETWORKS = (
    Row("networks[].name", "networks", "Joins network and card."),
    Row("networks[].pod", "networks", "The default network.", card(), '"netdev":"n-default"'),
    Row("networks[].pod.vmNetworkCIDR", "networks", "The guest's own network under masquerade."),
    Row("networks[].pod.vmIPv6NetworkCIDR", "networks", "The guest's own IPv6 network under masquerade."),
    Row("networks[].multus.**", "networks", "A bridge of the host, by its NetworkAttachmentDefinition."),
    Row(
        "networks[].resourceClaim.**",
        "refused",
        "No DRA.",
        card(network={"resourceClaim": {}}, bridge={}),
        Code.CLAIM_REFUSED,
    ),
)

LIFE = (
    Row("hostname", "networks", "Told by DHCP and cloud-init."),
    Row("subdomain", "networks", "The guest's domain, by DHCP; names of a headless Service."),
    Row("architecture", "QEMU", "amd64 or arm64; another than the host's is emulated.", {"architecture": "arm64"}, "-machine virt,"),
    Row(
        "architecture",
        "refused",
        "There is no QEMU for it.",
        {"architecture": "arm64"},
        Code.ARCHITECTURE_MISSING,
        host={"architectures": frozenset({"amd64"})},
    ),
    Row("terminationGracePeriodSeconds", "life cycle", "Time between the power button and the end."),
    Row("evictionStrategy", "life cycle", "Stored; there is no second node."),
    Row(
        "startStrategy",
        "QEMU",
        "Paused: it waits for unpause, and the boot menu is shown.",
        {"startStrategy": "Paused"},
        "menu=on,splash-time=10000",
    ),
    Row("accessCredentials[].sshPublicKey.source.**", "guest agent", "The keys."),
    Row("accessCredentials[].sshPublicKey.propagationMethod.noCloud", "seed disk", "By cloud-init."),
    Row("accessCredentials[].sshPublicKey.propagationMethod.configDrive", "seed disk", "By cloud-init."),
    Row(
        "accessCredentials[].sshPublicKey.propagationMethod.qemuGuestAgent.**",
        "guest agent",
        "While it runs, and again when the Secret changes.",
    ),
    Row("accessCredentials[].userPassword.**", "guest agent", "While it runs, and again when the Secret changes."),
    Row("livenessProbe.**", "life cycle", "Ends the machine when it fails."),
    Row("readinessProbe.**", "life cycle", "Decides whether the machine is Ready."),
    Row("nodeSelector", "placement", "Compared with the labels of the one Node."),
    Row("affinity.**", "placement", "Required terms are held; preferences decide nothing."),
    Row("tolerations[].**", "placement", "Compared with the taints of the one Node."),
    Row("topologySpreadConstraints[].**", "placement", "Held where they say DoNotSchedule."),
    Row("priorityClassName", "placement", "Has to exist; decides the order of starts."),
    Row("schedulerName", "no effect", "There is one node, and nothing to choose."),
    Row("serviceAccountName", "seed disk", "Whose token a serviceAccount volume holds."),
    Row("dnsPolicy", "networks", "Which DNS server the guest is told."),
    Row("dnsConfig.**", "networks", "Told by DHCP."),
    Row("resourceClaims[].**", "refused", "No DRA.", {"resourceClaims": [{"name": "c"}]}, Code.CLAIM_REFUSED),
    Row(
        "utilityVolumes[].**",
        "no effect",
        "Nothing here uses them.",
        {"utilityVolumes": [{"name": "u", "claimName": "c"}]},
        Code.UTILITY_IGNORED,
    ),
)

ANNOTATIONS = (
    Row("kubevirt.io/placePCIDevicesOnRootComplex", "QEMU", "true: no root ports, and nothing can be plugged in.", lacks="pcie-root-port"),
    Row("kubevirt.io/disablePCIHole64", "QEMU", "true: no PCI windows above the memory.", shows="q35-pcihost.pci-hole64-size=0"),
    Row(
        "kubevirt.io/free-page-reporting-disabled",
        "QEMU",
        "true: the guest does not give free memory back.",
        shows='"free-page-reporting":false',
    ),
    Row(
        "kubevirt.io/vga-display-efi-x86",
        "QEMU",
        "true: VGA for EFI, too.",
        {"domain.firmware.bootloader": {"efi": {"secureBoot": False}}},
        '"driver":"VGA"',
    ),
    Row("kubevirt.io/ignitiondata", "QEMU", "The text, by the firmware.", shows="-fw_cfg name=opt/com.coreos/config,file=/seeds/ignition"),
    Row("kubevirt.io/memfd", "no effect", "Memory that nobody shares is no file in any case."),
    Row("hooks.kubevirt.io/hookSidecars", "refused", "There is no container that could change a machine's definition."),
    Row("kubevirt.io/pause-guest-agent-probes", "life cycle", "true: the agent is not asked."),
    Row("kubevirt.io/keep-launcher-alive-after-failure", "no effect", "There is no launcher; the log of the last run stays in any case."),
)

MACHINE = (
    Row("runStrategy", "life cycle", "When the machine runs."),
    Row("running", "life cycle", "The older word for runStrategy."),
    Row("template.metadata.**", "life cycle", "Labels and annotations of the running machine."),
    Row("dataVolumeTemplates[].**", "volumes", "DataVolumes that are made with the machine and go with it."),
    Row("instancetype.**", "life cycle", "Sets processors and memory of the running machine; frozen when it is first used."),
    Row("preference.**", "life cycle", "Fills what the machine leaves open; frozen when it is first used."),
    Row("updateVolumesStrategy", "life cycle", "What a change of volumes means."),
)

ROWS = (*VOLUMES, *NETWORKS, *LIFE)
