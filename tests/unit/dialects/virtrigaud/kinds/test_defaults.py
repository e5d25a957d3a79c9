"""The values read back: every default, and given values against it."""

from typing import Any

import pytest

from paddock.kubernetes.admission import admit
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.schema.kind import AdmissionSettings
from tests.unit.dialects.virtrigaud.kinds.objects import admitted, said, thing

# What stands at a path when the object around it is given and the field is not.
DEFAULTS: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    ("VirtualMachine", {".importedDisk.diskID": "d", ".imageRef": None}, {"importedDisk.format": "qcow2"}),
    (
        "VirtualMachine",
        {".disks[0]": {"name": "a", "sizeGiB": 1, "scsi": {}}},
        {
            "disks.0.type": "thin",
            "disks.0.expandPolicy": "Offline",
            "disks.0.scsi.sharedBus": "noSharing",
            "disks.0.scsi.controllerType": "pvscsi",
        },
    ),
    (
        "VirtualMachine",
        {".lifecycle.postStart.httpGet.port": 80},
        {"lifecycle.gracefulShutdownTimeout": "60s", "lifecycle.postStart.httpGet.scheme": "HTTP"},
    ),
    (
        "VMClass",
        {
            ".diskDefaults": {},
            ".performanceProfile": {},
            ".securityProfile": {"encryptionPolicy": {}},
        },
        {
            "firmware": "BIOS",
            "guestToolsPolicy": "install",
            "diskDefaults.type": "thin",
            "diskDefaults.size": "40Gi",
            "performanceProfile.latencySensitivity": "normal",
            "performanceProfile.cpuHotAddEnabled": False,
            "performanceProfile.memoryHotAddEnabled": False,
            "performanceProfile.virtualizationBasedSecurity": False,
            "performanceProfile.nestedVirtualization": False,
            "performanceProfile.hyperThreadingPolicy": "auto",
            "securityProfile.secureBoot": False,
            "securityProfile.tpmEnabled": False,
            "securityProfile.vtdEnabled": False,
            "securityProfile.encryptionPolicy.enabled": False,
            "securityProfile.encryptionPolicy.requireEncryption": False,
        },
    ),
    (
        "VMImage",
        {
            ".source.vsphere.templateName": "t",
            ".source.libvirt.path": "/x",
            ".source.proxmox.templateID": 100,
            ".source.registry.image": "quay.io/a/b:c",
            ".source.http.authentication.basicAuth.secretRef.name": "s",
            ".prepare": {"storage": {}, "optimization": {}},
            ".metadata": {},
        },
        {
            "source.vsphere.checksumType": "sha256",
            "source.libvirt.format": "qcow2",
            "source.libvirt.checksumType": "sha256",
            "source.proxmox.format": "qcow2",
            "source.proxmox.fullClone": True,
            "source.http.checksumType": "sha256",
            "source.http.timeout": "30m",
            "source.http.authentication.basicAuth.usernameKey": "username",
            "source.http.authentication.basicAuth.passwordKey": "password",
            "source.registry.format": "qcow2",
            "prepare.onMissing": "Import",
            "prepare.validateChecksum": True,
            "prepare.timeout": "30m",
            "prepare.retries": 3,
            "prepare.storage.compression": False,
            "prepare.optimization.enableCompression": False,
            "prepare.optimization.removeUnusedSpace": False,
            "prepare.optimization.enableDeltaSync": False,
            "metadata.architecture": "amd64",
        },
    ),
    (
        "VMImage",
        {".source.http.authentication.bearer.secretRef.name": "s"},
        {"source.http.authentication.bearer.tokenKey": "token"},
    ),
    (
        "VMImage",
        {".source.http.authentication.clientCert.secretRef.name": "s"},
        {
            "source.http.authentication.clientCert.certKey": "tls.crt",
            "source.http.authentication.clientCert.keyKey": "tls.key",
        },
    ),
    (
        "VMNetworkAttachment",
        {
            ".network.vsphere": {"vlan": {}, "security": {}, "trafficShaping": {}},
            ".network.libvirt.bridge.name": "br0",
            ".network.proxmox.bridge": "vmbr0",
            ".ipAllocation": {},
            ".security": {"firewall": {}, "encryption": {}},
        },
        {
            "network.type": "bridged",
            "network.mtu": 1500,
            "network.vsphere.vlan.type": "none",
            "network.vsphere.security.allowPromiscuous": False,
            "network.vsphere.security.allowMACChanges": True,
            "network.vsphere.security.allowForgedTransmits": True,
            "network.vsphere.trafficShaping.enabled": False,
            "network.vsphere.adapterType": "vmxnet3",
            "network.libvirt.model": "virtio",
            "network.libvirt.bridge.stp": False,
            "network.proxmox.model": "virtio",
            "network.proxmox.firewall": False,
            "ipAllocation.type": "DHCP",
            "security.firewall.enabled": False,
            "security.firewall.defaultPolicy": "ACCEPT",
            "security.encryption.enabled": False,
        },
    ),
    (
        "Provider",
        {
            ".rateLimit": {},
            ".healthCheck": {},
            ".connectionPooling": {},
            ".runtime.service": {"tls": {}},
        },
        {
            "insecureSkipVerify": False,
            "rateLimit.qps": 10,
            "rateLimit.burst": 20,
            "runtime.mode": "Remote",
            "runtime.imagePullPolicy": "IfNotPresent",
            "runtime.replicas": 1,
            "runtime.logLevel": "info",
            "runtime.logFormat": "text",
            "runtime.service.port": 9443,
            "runtime.service.tls.enabled": True,
            "runtime.service.tls.insecureSkipVerify": False,
            "healthCheck.enabled": True,
            "healthCheck.interval": "30s",
            "healthCheck.timeout": "10s",
            "healthCheck.failureThreshold": 3,
            "healthCheck.successThreshold": 1,
            "connectionPooling.maxConnections": 10,
            "connectionPooling.maxIdleConnections": 5,
            "connectionPooling.connectionTimeout": "30s",
            "connectionPooling.idleTimeout": "5m",
        },
    ),
    (
        "VMSnapshot",
        {".snapshotConfig": {"encryption": {}}, ".retentionPolicy": {}, ".schedule": {}, ".metadata": {}},
        {
            "snapshotConfig.includeMemory": False,
            "snapshotConfig.quiesce": True,
            "snapshotConfig.compression": False,
            "snapshotConfig.type": "Standard",
            "snapshotConfig.consistencyLevel": "FilesystemConsistent",
            "snapshotConfig.encryption.enabled": False,
            "retentionPolicy.deleteOnVMDelete": True,
            "retentionPolicy.preservePinned": True,
            "retentionPolicy.gracePeriod": "24h",
            "schedule.enabled": False,
            "schedule.timezone": "UTC",
            "schedule.suspend": False,
            "schedule.concurrencyPolicy": "Forbid",
            "schedule.successfulJobsHistoryLimit": 3,
            "schedule.failedJobsHistoryLimit": 1,
            "metadata.pinned": False,
        },
    ),
    (
        "VMClone",
        {
            ".options": {"retryPolicy": {}, "storage": {}, "performance": {}},
            ".customization": {
                "sysprep": {"adminPassword": {}},
                "certificates": [{"name": "a"}],
                "guestCommands": [{"command": "true"}],
            },
        },
        {
            "options.type": "FullClone",
            "options.powerOn": False,
            "options.includeSnapshots": False,
            "options.parallel": False,
            "options.timeout": "30m",
            "options.retryPolicy.maxRetries": 3,
            "options.retryPolicy.retryDelay": "5m",
            "options.retryPolicy.backoffMultiplier": 2,
            "options.storage.preferThinProvisioning": True,
            "options.storage.enableCompression": False,
            "options.performance.priority": "Normal",
            "options.performance.ioThrottling": False,
            "options.performance.concurrentDisks": 2,
            "customization.sysprep.enabled": False,
            "customization.sysprep.adminPassword.secretKey": "password",
            "customization.certificates.0.secretKey": "tls.crt",
            "customization.certificates.0.store": "root",
            "customization.guestCommands.0.timeout": "5m",
            "customization.guestCommands.0.stage": "post-customization",
        },
    ),
    (
        "VMMigration",
        {".options": {"retryPolicy": {}, "validationChecks": {}}, ".storage": {"pvc": {}}},
        {
            "source.createSnapshot": True,
            "source.powerOffBeforeMigration": False,
            "source.deleteAfterMigration": False,
            "target.powerOn": False,
            "options.compress": False,
            "options.verifyChecksums": True,
            "options.timeout": "4h",
            "options.cleanupPolicy": "OnSuccess",
            "options.retryPolicy.maxRetries": 3,
            "options.retryPolicy.retryDelay": "5m",
            "options.retryPolicy.backoffMultiplier": 2,
            "options.validationChecks.checkDiskSize": True,
            "options.validationChecks.checkChecksum": True,
            "options.validationChecks.checkBoot": False,
            "options.validationChecks.checkConnectivity": False,
            "storage.type": "pvc",
            "storage.transferMode": "auto",
            "storage.pvc.accessMode": "ReadWriteMany",
            "storage.pvc.mountPath": "/mnt/migration-storage",
        },
    ),
    (
        "VMMigration",
        {".storage": {"type": "s3", "s3": {"bucket": "b", "credentialsSecretRef": {"name": "s"}}}},
        {"storage.s3.usePathStyle": False},
    ),
    (
        "VMMigration",
        {".storage": {"type": "nfs", "nfs": {"server": "nas", "export": "/e"}}},
        {"storage.nfs.readOnly": False},
    ),
    (
        "VMSet",
        {
            ".updateStrategy": {"rollingUpdate": {}},
            ".persistentVolumeClaimRetentionPolicy": {},
            ".ordinals": {},
        },
        {
            "replicas": 1,
            "revisionHistoryLimit": 10,
            "updateStrategy.type": "RollingUpdate",
            "updateStrategy.rollingUpdate.maxUnavailable": "25%",
            "updateStrategy.rollingUpdate.maxSurge": "25%",
            "updateStrategy.rollingUpdate.podManagementPolicy": "OrderedReady",
            "persistentVolumeClaimRetentionPolicy.whenDeleted": "Retain",
            "persistentVolumeClaimRetentionPolicy.whenScaled": "Retain",
            "ordinals.start": 0,
        },
    ),
    (
        "VMPlacementPolicy",
        {
            ".hard.tolerations[0]": {},
            ".affinity.applicationAffinity.enabled": True,
            ".antiAffinity.applicationAntiAffinity.enabled": True,
        },
        {
            "hard.tolerations.0.operator": "Equal",
            "affinity.applicationAffinity.applicationLabel": "app",
            "antiAffinity.applicationAntiAffinity.applicationLabel": "app",
        },
    ),
)


def at(data: Any, path: str) -> Any:
    for step in path.split("."):
        data = data[int(step)] if step.isdigit() else data[step]
    return data


@pytest.mark.spec("virtrigaud", 5)
@pytest.mark.parametrize(("kind", "changes", "expected"), DEFAULTS, ids=[f"{kind}-{index}" for index, (kind, *_) in enumerate(DEFAULTS)])
def test_defaults_are_read_back(kind: str, changes: dict[str, Any], expected: dict[str, Any]) -> None:
    admission = admitted(kind, changes)
    assert said(admission) == []
    found = {path: at(admission.data["spec"], path) for path in expected}
    assert found == expected


def test_without_the_object_around_it_there_is_no_default() -> None:
    assert admitted("VirtualMachine").data["spec"] == thing("VirtualMachine")["spec"]


# Booleans that are true when nothing is said.
TRUE = (
    ("Provider", ".runtime.service.tls.enabled"),
    ("Provider", ".healthCheck.enabled"),
    ("VMMigration", ".source.createSnapshot"),
    ("VMMigration", ".options.verifyChecksums"),
    ("VMImage", ".prepare.validateChecksum"),
    ("VMImage", ".source.proxmox.fullClone"),
    ("VMSnapshot", ".snapshotConfig.quiesce"),
    ("VMSnapshot", ".retentionPolicy.deleteOnVMDelete"),
    ("VMSnapshot", ".retentionPolicy.preservePinned"),
    ("VMClone", ".options.storage.preferThinProvisioning"),
    ("VMMigration", ".options.validationChecks.checkDiskSize"),
    ("VMMigration", ".options.validationChecks.checkChecksum"),
    ("VMNetworkAttachment", ".network.vsphere.security.allowMACChanges"),
    ("VMNetworkAttachment", ".network.vsphere.security.allowForgedTransmits"),
)
# Booleans that are false when nothing is said, and were mixed up with the others elsewhere.
FALSE = (
    ("VMMigration", ".storage.s3.usePathStyle", {"bucket": "b", "credentialsSecretRef": {"name": "s"}}),
    ("VMMigration", ".storage.nfs.readOnly", {"server": "nas", "export": "/e"}),
)


@pytest.mark.spec("virtrigaud", 6)
@pytest.mark.parametrize(("kind", "path"), TRUE)
def test_an_explicit_false_survives(kind: str, path: str) -> None:
    first = admitted(kind, {path: False})
    assert at(first.data["spec"], path[1:]) is False
    assert first.value is not None
    # As a typed client writes it, and read once more.
    written = to_data(first.value)
    again = admit(written, AdmissionSettings())
    assert at(again.data["spec"], path[1:]) is False


@pytest.mark.spec("virtrigaud", 6)
@pytest.mark.parametrize(("kind", "path", "company"), FALSE)
def test_an_explicit_true_survives(kind: str, path: str, company: dict[str, Any]) -> None:
    block, name = path[1:].rsplit(".", 1)
    first = admitted(kind, {".storage.type": block.removeprefix("storage."), f".{block}": {**company, name: True}})
    assert said(first) == []
    assert first.value is not None
    assert at(admit(to_data(first.value), AdmissionSettings()).data["spec"], path[1:]) is True
