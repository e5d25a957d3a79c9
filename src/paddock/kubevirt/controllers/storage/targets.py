"""The kinds that storage reads and writes, and the names that it goes by."""

from paddock.kubernetes.client.target import Target, declared
from paddock.kubernetes.core import configmap, persistentvolumeclaim, secret, storageclass, volumesnapshot
from paddock.kubernetes.core.configmap import ConfigMap
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.core.secret import Secret
from paddock.kubernetes.core.storageclass import StorageClass
from paddock.kubernetes.core.volumesnapshot import VolumeSnapshot
from paddock.kubernetes.targets import kind_target
from paddock.kubevirt.kinds import (
    cdiconfig,
    dataimportcron,
    datasource,
    datavolume_kind,
    instance,
    objecttransfer,
    storageprofile,
    volumesources,
)
from paddock.kubevirt.kinds.cdiconfig import CDI, CDIConfig
from paddock.kubevirt.kinds.dataimportcron import DataImportCron
from paddock.kubevirt.kinds.datasource import DataSource
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.objecttransfer import ObjectTransfer
from paddock.kubevirt.kinds.storageprofile import StorageProfile
from paddock.kubevirt.kinds.volumesources import VolumeCloneSource, VolumeImportSource, VolumeUploadSource

PROVISIONER = storageclass.PROVISIONER
CLASS_NAME = "paddock"
# A parameter of a StorageClass: which of the configured directories its volumes are in.
POOL = "pool"
BIND_NOW = "cdi.kubevirt.io/storage.bind.immediate.requested"

CLAIMS: Target[PersistentVolumeClaim] = declared(persistentvolumeclaim.KINDS[0], PersistentVolumeClaim)
VOLUMES = kind_target("", "PersistentVolume")
CLASSES: Target[StorageClass] = declared(storageclass.KINDS[0], StorageClass)
SECRETS = kind_target("", "Secret")
CONFIG_MAPS = kind_target("", "ConfigMap")
TYPED_SECRETS: Target[Secret] = declared(secret.KINDS[0], Secret)
TYPED_CONFIG_MAPS: Target[ConfigMap] = declared(configmap.KINDS[0], ConfigMap)
ACCESS_REVIEWS = kind_target("authorization.k8s.io", "SubjectAccessReview")
DATA_VOLUMES: Target[DataVolume] = declared(datavolume_kind.KINDS[0], DataVolume)
DATA_SOURCES: Target[DataSource] = declared(datasource.KINDS[0], DataSource)
IMPORT_CRONS: Target[DataImportCron] = declared(dataimportcron.KINDS[0], DataImportCron)
TRANSFERS: Target[ObjectTransfer] = declared(objecttransfer.KINDS[0], ObjectTransfer)
PROFILES: Target[StorageProfile] = declared(storageprofile.KINDS[0], StorageProfile)
CONFIGS: Target[CDIConfig] = declared(cdiconfig.KINDS[0], CDIConfig)
CDIS: Target[CDI] = declared(cdiconfig.KINDS[1], CDI)
IMPORT_SOURCES: Target[VolumeImportSource] = declared(volumesources.KINDS[0], VolumeImportSource)
UPLOAD_SOURCES: Target[VolumeUploadSource] = declared(volumesources.KINDS[1], VolumeUploadSource)
CLONE_SOURCES: Target[VolumeCloneSource] = declared(volumesources.KINDS[2], VolumeCloneSource)
INSTANCES: Target[VirtualMachineInstance] = declared(instance.KINDS[0], VirtualMachineInstance)
SNAPSHOTS: Target[VolumeSnapshot] = declared(volumesnapshot.KINDS[0], VolumeSnapshot)
