"""Labels and annotations of Kubermatic's dialect (docs/spec/kubermatic.md 2.1 to 2.3)."""

MANAGED_BY = "app.kubernetes.io/managed-by"
# On a DataVolume whose source was taken from a DataSource: <namespace>/<name> of that DataSource.
DATA_SOURCE = "virtualization.k8c.io/data-source"
# On a DataSource: import its image once, and copy it from then on.
CACHE = "virtualization.k8c.io/cache"
# On a machine: "false" lets its DataVolumes wait until the machine is started.
IMMEDIATE = "kubevirt.io/immediate-data-volume-creation"
