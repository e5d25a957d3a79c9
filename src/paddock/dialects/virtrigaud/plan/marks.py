"""Names that VirtRigaud's controllers read or write in metadata and statuses."""

from paddock.dialects import virtrigaud

MACHINE_FINALIZER = virtrigaud.MACHINE_FINALIZER
IMAGE_FINALIZER = "vmimage.infra.virtrigaud.io/finalizer"
PROVIDER_FINALIZER = "provider.infra.virtrigaud.io/finalizer"
CLONE_FINALIZER = "clone.infra.virtrigaud.io/finalizer"
ADOPTED_LABEL = "virtrigaud.io/adopted"
# On a machine that a VMClone made: the source, the VMClone, and its uid.
CLONED_FROM = "virtrigaud.io/cloned-from"
CLONE = "virtrigaud.io/clone"
CLONE_UID = "virtrigaud.io/clone-uid"
FORCE_DELETE = "virtrigaud.io/force-delete"
ORPHAN_ON_DELETE = "virtrigaud.io/orphan-on-delete"
# A user allows that a running machine is shut down and started again to apply a change.
ALLOW_RESTART = "virtrigaud.io/allow-restart"
# Namespaces whose machines may refer to an object: names separated by commas, or *.
CONSUMERS = "virtrigaud.io/consumer-namespaces"
# The revision of its set's template that a machine has.
SET_REVISION = "virtrigaud.io/set-revision"
# Members of status.provider that Paddock writes; a provider's own members of these names are left out.
OWN_PREFIX = "paddock.io/"
DISKS = "paddock.io/disks"
REQUESTED = "paddock.io/requested"
# Where the provider of a Provider is served already: HOST:PORT. Paddock then runs no program for it.
PROVIDER_ADDRESS = "virtrigaud.io/provider-address"
TRUE = "true"
# of migrations
MIGRATION_FINALIZER = "vmmigration.infra.virtrigaud.io/finalizer"
MIGRATION_LABEL = "virtrigaud.io/migration"
COMPONENT_LABEL, MIGRATION_STORAGE = "virtrigaud.io/component", "migration-storage"
MIGRATED_FROM, MIGRATED_TO, MIGRATION = "virtrigaud.io/migrated-from", "virtrigaud.io/migrated-to", "virtrigaud.io/migration"
MIGRATION_UID = "virtrigaud.io/migration-uid"
IMPORTED_DISK, DISK_CHECKSUM = "virtrigaud.io/imported-disk-id", "virtrigaud.io/disk-checksum"
MIGRATION_COMPLETED, MIGRATION_COMPLETED_AT = "virtrigaud.io/migration-completed", "virtrigaud.io/migration-completed-at"
# On a machine that a migration keeps off: the migration's uid, and the power state that the machine's spec had before.
FENCED_BY, POWER_BEFORE = "virtrigaud.io/fenced-by-migration", "virtrigaud.io/power-before-migration"
# On a machine: the paths of imported disks that become its data disks, as a JSON object by the disks' names.
IMPORTED_DISKS = "virtrigaud.io/imported-data-disks"
# Namespaces whose clones and migrations may make machines in a namespace: names separated by commas, or *.
ALLOWED_SOURCES = "infra.virtrigaud.io/allowed-source-namespaces"
SNAPSHOT_FINALIZER = "snapshot.infra.virtrigaud.io/finalizer"
# On a snapshot that a schedule or a hook made: the schedule's name, or the hook; and the time that it is for.
SNAPSHOT_SCHEDULE = "virtrigaud.io/snapshot-schedule"
SNAPSHOT_HOOK = "virtrigaud.io/snapshot-hook"
SCHEDULED_AT = "virtrigaud.io/scheduled-at"
# The revert of a machine that is under way or was the last one.
REVERT = "paddock.io/revert"
# On a Provider: adopt its machines that no VirtualMachine has, those that match a filter.
ADOPT, ADOPT_FILTER = "virtrigaud.io/adopt-vms", "virtrigaud.io/adopt-filter"
