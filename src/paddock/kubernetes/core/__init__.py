"""The built-in kinds of Kubernetes that machines refer to and that translations produce.

The API server of a cluster has these kinds itself, so they get no CRD (`builtin`), with one exception:
NetworkAttachmentDefinition. Where Kubernetes fills a default in, the text of the field names it and the declaration leaves the
field absent: a manifest is rendered as it was written.
"""

from paddock.kubernetes.schema.dialect import Dialect

DIALECT = Dialect(
    name="core",
    kinds={
        ("", "ConfigMap"): "configmap",
        ("", "Event"): "event",
        ("", "Namespace"): "namespace",
        ("", "PersistentVolumeClaim"): "persistentvolumeclaim",
        ("", "Secret"): "secret",
        ("", "Service"): "service",
        ("", "ServiceAccount"): "serviceaccount",
        ("apps", "ControllerRevision"): "controllerrevision",
        ("k8s.cni.cncf.io", "NetworkAttachmentDefinition"): "networkattachment",
        ("snapshot.storage.k8s.io", "VolumeSnapshot"): "volumesnapshot",
        ("snapshot.storage.k8s.io", "VolumeSnapshotClass"): "volumesnapshot",
        ("snapshot.storage.k8s.io", "VolumeSnapshotContent"): "volumesnapshot",
        ("storage.k8s.io", "StorageClass"): "storageclass",
    },
    effects="paddock.kubevirt.plan.changes.builtin",
)
