"""Cases of the rules of networks, providers, snapshots, clones, migrations, sets and policies."""

import json

from tests.unit.dialects.virtrigaud.kinds.cases import rule
from tests.unit.dialects.virtrigaud.kinds.objects import GONE

S3 = {"bucket": "b", "credentialsSecretRef": {"name": "s"}}
NFS = {"server": "nas.example.com", "export": "/e"}
FIREWALL = {"name": "r", "action": "ACCEPT", "direction": "in"}
CASES = (
    rule(
        "port-range",
        kind="VMNetworkAttachment",
        bad={".security.firewall.rules": [{**FIREWALL, "ports": {"start": 80, "end": 79}}]},
        good={".security.firewall.rules": [{**FIREWALL, "ports": {"start": 80, "end": 80}}]},
        field="spec.security.firewall.rules[0].ports.end",
        words="must not be smaller than start (80)",
    ),
    rule(
        "firewall-network",
        kind="VMNetworkAttachment",
        bad={".security.firewall.rules": [{**FIREWALL, "sourceCIDR": "everywhere"}]},
        good={".security.firewall.rules": [{**FIREWALL, "sourceCIDR": "fd00::/8"}]},
        field="spec.security.firewall.rules[0].sourceCIDR",
        words="everywhere is no network",
        warns=True,
    ),
    rule(
        "credentials-namespace",
        kind="Provider",
        bad={".credentialSecretRef.namespace": "other"},
        good={".credentialSecretRef.namespace": "team"},
        field="spec.credentialSecretRef.namespace",
        words='Forbidden: the Secret has to be in the Provider\'s own namespace "team"',
    ),
    rule(
        "credentials-namespace",
        kind="Provider",
        bad={".credentialSecretRef.namespace": "other", "metadata.namespace": GONE},
        good={"metadata.namespace": GONE},
        field="spec.credentialSecretRef.namespace",
        words="has to be in the Provider's own namespace",
        warns=True,
    ),
    *(
        rule(
            "insecure",
            kind="Provider",
            bad={path: bad},
            good={path: not bad},
            field=f"spec{path}",
            words="for development only",
            warns=True,
        )
        for path, bad in (
            (".insecureSkipVerify", True),
            (".runtime.service.tls.enabled", False),
            (".runtime.service.tls.insecureSkipVerify", True),
        )
    ),
    rule(
        "endpoint-type",
        kind="Provider",
        bad={".type": "vsphere"},
        good={".type": "vsphere", ".endpoint": "https://vcenter.example.com/sdk"},
        field="spec.endpoint",
        words="no address of a vsphere hypervisor",
        warns=True,
    ),
    rule(
        "idle-connections",
        kind="Provider",
        bad={".connectionPooling.maxConnections": 4},
        good={".connectionPooling.maxConnections": 5},
        field="spec.connectionPooling.maxIdleConnections",
        words="is more than maxConnections (4)",
        warns=True,
    ),
    rule(
        "adopt-filter",
        kind="Provider",
        bad={"metadata.annotations": {"virtrigaud.io/adopt-vms": "yes"}},
        good={"metadata.annotations": {"virtrigaud.io/adopt-vms": "true"}},
        field="metadata.annotations[virtrigaud.io/adopt-vms]",
        words='the value has to be "true"',
        warns=True,
    ),
    *(
        rule(
            "adopt-filter",
            kind="Provider",
            bad={"metadata.annotations": {"virtrigaud.io/adopt-filter": bad if isinstance(bad, str) else json.dumps(bad)}},
            good={"metadata.annotations": {"virtrigaud.io/adopt-filter": '{"namePattern": "^a", "minCPU": 1, "maxCPU": 2}'}},
            field="metadata.annotations[virtrigaud.io/adopt-filter]",
            words=words,
        )
        for bad, words in (
            ("not json", "must be a JSON object"),
            ("[1]", "must be a JSON object"),
            ({"name": "x"}, "unknown member name; known are namePattern, powerState, minCPU"),
            ({"namePattern": "("}, "namePattern is no regular expression"),
            ({"namePattern": 1}, "namePattern must be a string"),
            ({"minCPU": "2"}, "minCPU must be a whole number"),
            ({"minCPU": -1}, "minCPU must be a whole number that is not negative"),
            ({"minMemoryMiB": 2, "maxMemoryMiB": 1}, "minMemoryMiB is more than maxMemoryMiB"),
        )
    ),
    rule(
        "schedule",
        kind="VMSnapshot",
        bad={".schedule.enabled": True},
        good={".schedule": {"enabled": True, "cronSpec": "@daily"}},
        field="spec.schedule.cronSpec",
        words="Required value: a schedule that runs needs a time",
    ),
    *(
        rule(
            "schedule",
            kind="VMSnapshot",
            bad={".schedule.cronSpec": bad},
            good={".schedule.cronSpec": "*/5 0-6 1,15 jan-mar mon"},
            field="spec.schedule.cronSpec",
            words=words,
        )
        for bad, words in (
            ("60 * * * *", "'60' is no minute from 0 to 59"),
            ("* * * *", "has 4 fields and needs 5"),
            ("@sometimes", "is none of @yearly"),
            ("@every soon", "is no duration"),
            ("5-1 * * * *", "the range goes down"),
            ("*/0 * * * *", "a step cannot be 0"),
            ("* * * foo *", "is no month"),
        )
    ),
    rule(
        "snapshot-memory",
        kind="VMSnapshot",
        bad={".snapshotConfig": {"includeMemory": True, "type": "Crash"}},
        good={".snapshotConfig": {"includeMemory": True}},
        field="spec.snapshotConfig.type",
        words='type "Crash" has no effect',
        warns=True,
    ),
    *(
        rule(
            "snapshot-encryption",
            (171,),
            kind="VMSnapshot",
            bad={".snapshotConfig": {"encryption": {"enabled": False, **key}}},
            good={".snapshotConfig": {"encryption": {"enabled": True, **key}}},
            field=f"spec.snapshotConfig.encryption.{member}",
            words="has no effect while enabled is false",
            warns=True,
        )
        for key in ({"keyProvider": "hardware"}, {"keyRef": {"name": "keys"}})
        for member in key
    ),
    rule(
        "clone-source",
        kind="VMClone",
        bad={".source": {}},
        good={".source": {"snapshotRef": {"name": "s"}}},
        field="spec.source",
        words="Required value: exactly one of vmRef, snapshotRef, templateRef and imageRef",
    ),
    *(
        rule(
            "clone-source",
            kind="VMClone",
            bad={f".source.{other}": {"name": "x"}},
            good={".source": {other: {"name": "x"}}},
            field=f"spec.source.{other}",
            words="exactly one of vmRef, snapshotRef, templateRef and imageRef, and vmRef is given",
        )
        for other in ("snapshotRef", "templateRef", "imageRef")
    ),
    rule(
        "clone-address",
        kind="VMClone",
        bad={".customization.networks": [{"name": "a", "subnetMask": "255.0.255.0"}]},
        good={".customization.networks": [{"name": "a", "subnetMask": "255.255.254.0"}]},
        field="spec.customization.networks[0].subnetMask",
        words="must be a net mask",
    ),
    rule(
        "clone-address",
        kind="VMClone",
        bad={".customization.networks": [{"name": "a", "dns": ["1.1.1.1", "one"]}]},
        good={".customization.networks": [{"name": "a", "dns": ["1.1.1.1", "fd00::1"]}]},
        field="spec.customization.networks[0].dns[1]",
        words="must be an IP address",
    ),
    rule(
        "clone-address",
        kind="VMClone",
        bad={".customization.networks": [{"name": "a", "dhcp": True, "ipAddress": "10.0.0.1"}]},
        good={".customization.networks": [{"name": "a", "dhcp": False, "ipAddress": "10.0.0.1"}]},
        field="spec.customization.networks[0].ipAddress",
        words="no effect with dhcp",
        warns=True,
    ),
    *(
        rule(
            "clone-address",
            (171,),
            kind="VMClone",
            bad={".customization.networks": [{"name": "a", **without, member: value}]},
            good={".customization.networks": [{"name": "a", "ipAddress": "10.0.0.9", member: value}]},
            field=f"spec.customization.networks[0].{member}",
            words=words,
            warns=True,
        )
        for without, words in (({"dhcp": True}, "has no effect with dhcp"), ({}, "has no effect without ipAddress"))
        for member, value in (("subnetMask", "255.255.0.0"), ("gateway", "10.0.0.1"), ("dns", ["10.0.0.2"]))
    ),
    rule(
        "clone-secret",
        (171,),
        kind="VMClone",
        bad={".customization.sysprep": {"enabled": False}},
        good={".customization.sysprep": {"enabled": True}},
        field="spec.customization.sysprep",
        words="has no effect while enabled is false",
        warns=True,
    ),
    rule(
        "clone-secret",
        kind="VMClone",
        bad={".customization.certificates": [{"name": "a"}]},
        good={".customization.certificates": [{"name": "a", "data": "x"}]},
        field="spec.customization.certificates[0]",
        words="no clone is made without one of them",
        warns=True,
    ),
    *(
        rule(
            "clone-secret",
            kind="VMClone",
            bad={".customization.sysprep.adminPassword": bad},
            good={".customization.sysprep.adminPassword": {"secretRef": {"name": "s"}}},
            field=f"spec.customization.sysprep.adminPassword{below}",
            words=words,
            warns=True,
        )
        for bad, below, words in (
            ({"value": "x", "secretRef": {"name": "s"}}, ".value", "secretRef is given, too"),
            ({}, "", "there is no password"),
        )
    ),
    *(
        rule(
            "migration-storage",
            (20,),
            kind="VMMigration",
            bad={".storage.type": kind},
            good={".storage": {"type": kind, kind: block}},
            field=f"spec.storage.{kind}",
            words=f'Required value: type "{kind}" needs',
        )
        for kind, block in (("s3", S3), ("nfs", NFS))
    ),
    rule(
        "migration-storage",
        kind="VMMigration",
        bad={".storage.s3": S3},
        good={".storage": {"type": "s3", "s3": S3}},
        field="spec.storage.s3",
        words='no effect with type "pvc"',
        warns=True,
    ),
    *(
        rule(
            "migration-storage",
            (171,),
            kind="VMMigration",
            bad={".storage": {"type": "pvc", "pvc": bad}},
            good={".storage": {"type": "pvc", "pvc": good}},
            field=f"spec.storage.pvc.{member}",
            words="has no effect: ",
            warns=True,
        )
        for member, bad, good in (
            ("mountPath", {"mountPath": "/other"}, {"mountPath": "/mnt/migration-storage"}),
            ("size", {"name": "there", "size": "9Gi"}, {"size": "9Gi"}),
            ("storageClassName", {"name": "there", "storageClassName": "fast"}, {"storageClassName": "fast"}),
            ("accessMode", {"name": "there", "accessMode": "ReadWriteOnce"}, {"accessMode": "ReadWriteOnce"}),
        )
    ),
    rule(
        "migration-storage",
        (171,),
        kind="VMMigration",
        bad={".storage": {"type": "nfs", "nfs": {**NFS, "readOnly": True}}},
        good={".storage": {"type": "nfs", "nfs": NFS}},
        field="spec.storage.nfs.readOnly",
        words="has no effect: a migration writes to the export",
        warns=True,
    ),
    *(
        rule(
            "migration-host",
            kind="VMMigration",
            bad={".storage": {"type": "s3", "s3": {**S3, "endpoint": endpoint}}},
            good={".storage": {"type": "s3", "s3": {**S3, "endpoint": "https://10.0.0.5:9000"}}},
            field="spec.storage.s3.endpoint",
            words=words,
        )
        for endpoint, words in (
            ("https://127.0.0.1:9000", "a loopback address"),
            ("http://localhost", "this machine"),
            ("https://[::1]:9000/", "a loopback address"),
            ("https://[::ffff:127.0.0.1]/", "a loopback address"),
            ("http://2130706433/", "a loopback address"),
            ("http://0x7f.1/", "a loopback address"),
            ("http://169.254.169.254/latest", "a cloud's metadata service"),
            ("http://metadata.google.internal.", "metadata service"),
            ("169.254.3.4:9000", "a link-local address"),
            ("http://0.0.0.0", "the unspecified address"),
            ("http://224.0.0.1", "a multicast address"),
        )
    ),
    rule(
        "migration-host",
        kind="VMMigration",
        bad={".storage": {"type": "nfs", "nfs": {**NFS, "server": "[fe80::1]"}}},
        good={".storage": {"type": "nfs", "nfs": NFS}},
        field="spec.storage.nfs.server",
        words="a link-local address",
    ),
    rule(
        "migration-target",
        kind="VMMigration",
        bad={".target.name": "vm"},
        good={".target": {"name": "vm", "namespace": "other", "providerRef": {"name": "q"}, "classRef": {"name": "c"}}},
        field="spec.target.name",
        words="is the machine that moves",
    ),
    rule(
        "migration-target",
        kind="VMMigration",
        bad={".target.classRef": GONE},
        good={},
        field="spec.target.classRef",
        words="a machine needs a class",
        warns=True,
    ),
    rule(
        "migration-target",
        (171,),
        kind="VMMigration",
        bad={".target.imageRef": {"name": "ubuntu"}},
        good={},
        field="spec.target.imageRef",
        words="has no effect: the new machine boots from the disk that is brought",
        warns=True,
    ),
    rule(
        "set-selector",
        (19,),
        kind="VMSet",
        bad={".template.metadata.labels": {"app": "db"}},
        good={".template.metadata.labels": {"app": "web", "tier": "front"}},
        field="spec.template.metadata.labels",
        words="do not match the selector app=web",
    ),
    rule(
        "set-selector",
        (19,),
        kind="VMSet",
        bad={".template.metadata": GONE},
        good={},
        field="spec.template.metadata.labels",
        words="do not match the selector app=web",
    ),
    rule(
        "set-selector",
        kind="VMSet",
        bad={".selector": {}},
        good={},
        field="spec.selector",
        words="an empty selector would take in every machine",
    ),
    rule(
        "rolling-update",
        kind="VMSet",
        bad={".updateStrategy.rollingUpdate": {"maxUnavailable": 0, "maxSurge": "0%"}},
        good={".updateStrategy.rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
        field="spec.updateStrategy.rollingUpdate.maxUnavailable",
        words="must not be 0 when maxSurge is 0",
    ),
    rule(
        "rolling-update",
        kind="VMSet",
        bad={".updateStrategy": {"type": "OnDelete", "rollingUpdate": {}}},
        good={".updateStrategy": {"type": "OnDelete"}},
        field="spec.updateStrategy.rollingUpdate",
        words='no effect with type "OnDelete"',
        warns=True,
    ),
    rule(
        "claim-template",
        kind="VMSet",
        bad={".volumeClaimTemplates": [{"spec": {}}]},
        good={".volumeClaimTemplates": [{"metadata": {"name": "a"}, "spec": {}}]},
        field="spec.volumeClaimTemplates[0].metadata.name",
        words="Required value",
    ),
    rule(
        "claim-template",
        kind="VMSet",
        bad={".volumeClaimTemplates": [{"metadata": {"name": "a"}, "spec": {}}] * 2},
        good={".volumeClaimTemplates": [{"metadata": {"name": "a"}, "spec": {}}]},
        field="spec.volumeClaimTemplates[1].metadata.name",
        words="Duplicate value",
    ),
    *(
        rule(
            "template-name",
            (171,),
            kind="VMSet",
            bad={f".template.metadata.{member}": "other"},
            good={},
            field=f"spec.template.metadata.{member}",
            words=f"has no effect: the machines have their {member} from the set",
            warns=True,
        )
        for member in ("name", "namespace")
    ),
    rule(
        "toleration",
        (171,),
        kind="VMPlacementPolicy",
        bad={".soft.tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 3}]},
        good={".soft.tolerations": [{"key": "a", "operator": "Exists"}]},
        field="spec.soft.tolerations[0].tolerationSeconds",
        words="has no effect: a taint keeps machines away, and ends none",
        warns=True,
    ),
    rule(
        "toleration",
        kind="VMPlacementPolicy",
        bad={".hard.tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
        good={".hard.tolerations": [{"key": "a", "operator": "Equal", "value": "b"}]},
        field="spec.hard.tolerations[0].value",
        words="no meaning with operator Exists",
    ),
    rule(
        "excluded",
        kind="VMPlacementPolicy",
        bad={".hard": {"hosts": ["a", "b"], "excludedHosts": ["b"]}},
        good={".hard": {"hosts": ["a"], "excludedHosts": ["b"]}},
        field="spec.hard.excludedHosts[0]",
        words="b is also among hosts",
        warns=True,
    ),
    *(
        rule(
            "affinity-term",
            kind="VMPlacementPolicy",
            bad={f".{place}": [wrap({"topologyKey": "host", "matchExpressions": [{"key": "a", "operator": "In"}]})]},
            good={f".{place}": [wrap({"topologyKey": "host", "matchExpressions": [{"key": "a", "operator": "Exists"}]})]},
            field=f"spec.{place}[0]{below}.matchExpressions[0].values",
            words='must be specified when operator is "In"',
        )
        for place, wrap, below in (
            ("affinity.vmAffinity.requiredDuringScheduling", lambda term: term, ""),
            (
                "antiAffinity.vmAntiAffinity.preferredDuringScheduling",
                lambda term: {"weight": 1, "vmAffinityTerm": term},
                ".vmAffinityTerm",
            ),
        )
    ),
)
