"""Cases of the rules of machines, classes, images and networks."""

from tests.unit.dialects.virtrigaud.kinds.cases import rule
from tests.unit.dialects.virtrigaud.kinds.objects import GONE

DISK_REF = {"diskID": "d"}
CARD = {"name": "eth0", "networkRef": {"name": "n"}}
EXEC, GET, SNAPSHOT = {"command": ["true"]}, {"port": 80}, {"name": "s"}
CASES = (
    rule(
        "image-or-disk",
        bad={".importedDisk": DISK_REF},
        good={".importedDisk": DISK_REF, ".imageRef": GONE},
        field="spec.importedDisk",
        words="Forbidden: imageRef and importedDisk are mutually exclusive",
    ),
    rule(
        "image-or-disk",
        bad={".imageRef": GONE},
        good={},
        field="spec.imageRef",
        words="neither imageRef nor importedDisk",
        warns=True,
    ),
    *(
        rule(
            "datastore-or-pod",
            (13,),
            kind=kind,
            bad={f".{place}": {"datastore": "d", "storagePod": "p"}},
            good={f".{place}": {"datastore": "d", "storagePod": ""}},
            field=f"spec.{place}.storagePod",
            words="Forbidden: datastore and storagePod are mutually exclusive",
        )
        for kind, place in (("VirtualMachine", "placement"), ("Provider", "defaults"))
    ),
    *(
        rule(
            "lifecycle-action",
            (14,),
            bad={f".lifecycle.{hook}": bad},
            good={f".lifecycle.{hook}": {"exec": EXEC}},
            field=f"spec.lifecycle.{hook}{below}",
            words=words,
        )
        for hook in ("preStop", "postStart")
        for bad, below, words in (
            ({}, "", "Required value: exactly one of exec, httpGet and snapshot"),
            ({"exec": EXEC, "httpGet": GET}, ".httpGet", "Forbidden: exactly one of exec, httpGet and snapshot, and exec is given"),
            ({"httpGet": GET, "snapshot": SNAPSHOT}, ".snapshot", "Forbidden: exactly one of exec, httpGet and snapshot"),
        )
    ),
    *(
        rule(
            "network-ref",
            (15,),
            kind=kind,
            bad={f".{place}": [CARD, {"name": "eth1"}]},
            good={f".{place}": [CARD]},
            field=f"spec.{place}[1].networkRef",
            words="the card is on the default network of its Provider",
            warns=True,
        )
        for kind, place in (
            ("VirtualMachine", "networks"),
            ("VMClone", "target.networks"),
            ("VMMigration", "target.networks"),
            ("VMSet", "template.spec.networks"),
        )
    ),
    *(
        rule(
            "static-address",
            kind=kind,
            bad={f".{place}": [{**CARD, "ipAddress": "10.0.0.5", "dns": "10.0.0.1,nameserver"}]},
            good={f".{place}": [{**CARD, "ipAddress": "10.0.0.5", "dns": "10.0.0.1, fd00::1"}]},
            field=f"spec.{place}[0].dns",
            words="must be addresses separated by commas",
        )
        for kind, place in (("VirtualMachine", "networks"), ("VMClone", "target.networks"), ("VMMigration", "target.networks"))
    ),
    rule(
        "static-address",
        bad={".networks": [{**CARD, "prefix": 24}]},
        good={".networks": [{**CARD, "prefix": 24, "ipAddress": "10.0.0.5"}]},
        field="spec.networks[0].prefix",
        words="prefix has no effect without ipAddress",
        warns=True,
    ),
    rule(
        "static-address",
        bad={".networks": [{**CARD, "ipAddress": "10.0.0.5", "gateway": "10.0.1.1"}]},
        good={".networks": [{**CARD, "ipAddress": "10.0.0.5", "prefix": 16, "gateway": "10.0.1.1"}]},
        field="spec.networks[0].gateway",
        words="outside of 10.0.0.0/24 (24 is taken when no prefix is given)",
        warns=True,
    ),
    rule(
        "timeout",
        bad={".lifecycle.gracefulShutdownTimeout": "-1s"},
        good={".lifecycle.gracefulShutdownTimeout": "0s"},
        field="spec.lifecycle.gracefulShutdownTimeout",
        words="must not be negative",
    ),
    *(
        rule("timeout", kind=kind, bad={path: "-5m"}, good={path: "5m"}, field=f"spec{path}", words="must not be negative")
        for kind, path in (
            ("VMImage", ".prepare.timeout"),
            ("VMImage", ".source.http.timeout"),
            ("Provider", ".healthCheck.interval"),
            ("Provider", ".healthCheck.timeout"),
            ("Provider", ".connectionPooling.connectionTimeout"),
            ("Provider", ".connectionPooling.idleTimeout"),
            ("VMSnapshot", ".retentionPolicy.maxAge"),
            ("VMSnapshot", ".retentionPolicy.gracePeriod"),
            ("VMClone", ".options.timeout"),
            ("VMClone", ".options.retryPolicy.retryDelay"),
            ("VMMigration", ".options.timeout"),
            ("VMMigration", ".options.retryPolicy.retryDelay"),
        )
    ),
    rule(
        "timeout",
        kind="VMClone",
        bad={".customization.guestCommands": [{"command": "true", "timeout": "-1s"}]},
        good={".customization.guestCommands": [{"command": "true", "timeout": "1s"}]},
        field="spec.customization.guestCommands[0].timeout",
        words="must not be negative",
    ),
    *(
        rule(
            "user-data",
            kind=kind,
            bad={f".{place}": {"cloudInit": {"inline": "#cloud-config\n{}"}, "ignition": {"inline": "{}"}}},
            good={f".{place}": {"ignition": {"inline": "{}"}}},
            field=f"spec.{place}.ignition",
            words="Forbidden: cloudInit is given",
        )
        for kind, place in (
            ("VirtualMachine", "userData"),
            ("VMClone", "customization.userData"),
            ("VMSet", "template.spec.userData"),
        )
    ),
    rule(
        "user-data",
        bad={".userData.ignition": {"inline": "{}", "secretRef": {"name": "s"}}},
        good={".userData.ignition": {"secretRef": {"name": "s"}}},
        field="spec.userData.ignition.secretRef",
        words="two Ignition documents cannot be merged",
    ),
    rule(
        "user-data",
        bad={".userData.cloudInit": {}},
        good={".userData.cloudInit": {"secretRef": {"name": "s"}}},
        field="spec.userData.cloudInit",
        words="neither inline nor secretRef",
        warns=True,
    ),
    rule(
        "user-data",
        bad={".userData.cloudInit.inline": "#cloud-config\n- a\n"},
        good={".userData.cloudInit.inline": "#cloud-config\na: b\n"},
        field="spec.userData.cloudInit.inline",
        words="cloud-init will refuse this: line 2",
        warns=True,
    ),
    rule(
        "user-data",
        bad={".userData.cloudInit.inline": "packages: [a]"},
        good={".userData.cloudInit.inline": "#!/bin/sh\ntrue"},
        field="spec.userData.cloudInit.inline",
        words="start it with #cloud-config",
        warns=True,
    ),
    rule(
        "meta-data",
        bad={".metaData.cloudInit.inline": "just words"},
        good={".metaData.cloudInit.inline": "local-hostname: web"},
        field="spec.metaData.cloudInit.inline",
        words="cloud-init will refuse this: line 1: must be a mapping",
        warns=True,
    ),
    rule(
        "class-memory",
        kind="VMClass",
        bad={".memory": 4096},
        good={".memory": "4096Mi"},
        field="spec.memory",
        words="numbers without a unit are bytes",
        warns=True,
    ),
    rule(
        "secure-boot",
        kind="VMClass",
        bad={".securityProfile.secureBoot": True},
        good={".securityProfile.secureBoot": True, ".firmware": "EFI"},
        field="spec.firmware",
        words="Secure Boot needs UEFI",
        warns=True,
    ),
    rule(
        "tpm",
        kind="VMClass",
        bad={".securityProfile.tpmVersion": "2.0"},
        good={".securityProfile": {"tpmVersion": "2.0", "tpmEnabled": True}},
        field="spec.securityProfile.tpmVersion",
        words="no effect without tpmEnabled",
        warns=True,
    ),
    *(
        rule(
            "reservation",
            kind="VMClass",
            bad={".resourceLimits": {f"{what}Limit": least, f"{what}Reservation": most}},
            good={".resourceLimits": {f"{what}Limit": most, f"{what}Reservation": least}},
            field=f"spec.resourceLimits.{what}Reservation",
            words=f"is more than {what}Limit",
            warns=True,
        )
        for what, least, most in (("cpu", 1000, 2000), ("memory", "1Gi", "2Gi"))
    ),
    rule(
        "image-source",
        kind="VMImage",
        bad={".source": {}},
        good={},
        field="spec.source",
        words="no source: give at least one of vsphere",
        warns=True,
    ),
    *(
        rule(
            "image-source",
            kind="VMImage",
            bad={f".source.{block}": {}},
            good={f".source.{block}": {member: value}},
            field=f"spec.source.{block}",
            words=f"names no image: give {member}",
            warns=True,
        )
        for block, member, value in (
            ("vsphere", "templateName", "t"),
            ("libvirt", "path", "/x"),
            ("proxmox", "templateID", 100),
        )
    ),
    rule(
        "image-authentication",
        kind="VMImage",
        bad={".source.http.authentication": {"basicAuth": {"secretRef": {"name": "a"}}, "bearer": {"secretRef": {"name": "b"}}}},
        good={".source.http.authentication": {"bearer": {"secretRef": {"name": "b"}}}},
        field="spec.source.http.authentication.bearer",
        words="Forbidden: only one of basicAuth, bearer and clientCert, and basicAuth is given",
    ),
    rule(
        "image-authentication",
        kind="VMImage",
        bad={".source.http.authentication": {}},
        good={".source.http.authentication": {"bearer": {"secretRef": {"name": "b"}}}},
        field="spec.source.http.authentication",
        words="names no way to log in",
        warns=True,
    ),
    rule(
        "image-checksum",
        kind="VMImage",
        bad={".source.http.checksum": "abc"},
        good={".source.http.checksum": "a" * 64},
        field="spec.source.http.checksum",
        words="is no sha256 checksum",
        warns=True,
    ),
    rule(
        "network-source",
        kind="VMNetworkAttachment",
        bad={".network": {}},
        good={".network": {"type": "isolated"}},
        field="spec.network",
        words="no network: give at least one of vsphere, libvirt, proxmox",
        warns=True,
    ),
    rule(
        "network-source",
        kind="VMNetworkAttachment",
        bad={".network.libvirt.networkName": "default"},
        good={},
        field="spec.network.libvirt.networkName",
        words="the bridge is taken",
        warns=True,
    ),
    *(
        rule(
            "vlan",
            kind="VMNetworkAttachment",
            bad={".network.vsphere.vlan": {"type": kind}},
            good={".network.vsphere.vlan": {"type": kind, **good}},
            field=f"spec.network.vsphere.vlan.{next(iter(good))}",
            words=f'type "{kind}" needs it',
            warns=True,
        )
        for kind, good in (
            ("vlan", {"vlanID": 5}),
            ("trunk", {"trunkVlanIDs": [5]}),
            ("pvlan", {"primaryVlanID": 5, "secondaryVlanID": 6}),
        )
    ),
    rule(
        "vlan",
        kind="VMNetworkAttachment",
        bad={".network.vsphere.vlan": {"vlanID": 5}},
        good={".network.vsphere.vlan": {"type": "vlan", "vlanID": 5}},
        field="spec.network.vsphere.vlan.vlanID",
        words='no effect with type "none"',
        warns=True,
    ),
    rule(
        "ip-allocation",
        kind="VMNetworkAttachment",
        bad={".ipAllocation": {"type": "Pool"}},
        good={".ipAllocation": {"type": "Pool", "poolConfig": {"poolRef": {"name": "p"}}}},
        field="spec.ipAllocation.poolConfig",
        words="needs the name of a pool",
        warns=True,
    ),
    rule(
        "ip-allocation",
        kind="VMNetworkAttachment",
        bad={".ipAllocation": {"staticConfig": {"address": "10.0.0.5/24"}}},
        good={".ipAllocation": {"type": "Static", "staticConfig": {"address": "10.0.0.5/24"}}},
        field="spec.ipAllocation.staticConfig",
        words='no effect with type "DHCP"',
        warns=True,
    ),
    rule(
        "ip-allocation",
        kind="VMNetworkAttachment",
        bad={".ipAllocation": {"type": "Static", "staticConfig": {"address": "10.0.0.5/24", "gateway": "10.1.0.1"}}},
        good={".ipAllocation": {"type": "Static", "staticConfig": {"address": "10.0.0.5/8", "gateway": "10.1.0.1"}}},
        field="spec.ipAllocation.staticConfig.gateway",
        words="outside of 10.0.0.0/24",
        warns=True,
    ),
)
