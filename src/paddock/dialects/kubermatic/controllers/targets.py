"""The kinds that Kubermatic's front door touches, as the client names them."""

from paddock.base.jsondata import Data
from paddock.dialects.kubermatic.kinds import image
from paddock.dialects.kubermatic.kinds.image import CatalogImage
from paddock.kubernetes.client.target import Target, declared
from paddock.kubernetes.core import configmap, secret
from paddock.kubernetes.core.configmap import ConfigMap
from paddock.kubernetes.core.secret import Secret
from paddock.kubevirt.kinds import datasource, datavolume_kind, kubevirt_cr, pool, virtualmachine
from paddock.kubevirt.kinds.datasource import DataSource
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.pool import VirtualMachinePool
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine

MANAGER = "paddock-kubermatic"
# On what users wrote: it waits until what was made of it is gone.
FINALIZER = "virtualization.k8c.io/backend"
# On what users wrote: what of it was written to the cluster last (plan/kubermatic/writing.py says how).
WRITTEN = "virtualization.k8c.io/written"

MACHINES: Target[VirtualMachine] = declared(virtualmachine.KINDS[0], VirtualMachine)
POOLS: Target[VirtualMachinePool] = declared(pool.KINDS[0], VirtualMachinePool)
VOLUMES: Target[DataVolume] = declared(datavolume_kind.KINDS[0], DataVolume)
VOLUME_DATA: Target[Data] = declared(datavolume_kind.KINDS[0], dict)
SOURCES: Target[DataSource] = declared(datasource.KINDS[0], DataSource)
IMAGES: Target[CatalogImage] = declared(image.KINDS[0], CatalogImage)
INSTALLATIONS: Target[Data] = declared(kubevirt_cr.KINDS[0], dict)
SECRETS: Target[Secret] = declared(secret.KINDS[0], Secret)
CONFIG_MAPS: Target[ConfigMap] = declared(configmap.KINDS[0], ConfigMap)
