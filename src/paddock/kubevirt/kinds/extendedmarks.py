"""Labels and annotations of Kubermatic's dialect (docs/spec/kubermatic.md 2.1 to 2.3)."""

MANAGED_BY = "app.kubernetes.io/managed-by"
# On a DataVolume whose source was taken from a DataSource: <namespace>/<name> of that DataSource.
DATA_SOURCE = "virtualization.k8c.io/data-source"
# On a DataSource: import its image once, and copy it from then on.
CACHE = "virtualization.k8c.io/cache"
# On a machine: "false" lets its DataVolumes wait until the machine is started.
IMMEDIATE = "kubevirt.io/immediate-data-volume-creation"
# CDI's, on a DataVolume: do not wait for a machine that uses it.
BIND_NOW = "cdi.kubevirt.io/storage.bind.immediate.requested"
# On a machine: whether its sources are known (docs/spec/kubermatic.md section 3).
RESOLVED = "DataSourceResolved"
