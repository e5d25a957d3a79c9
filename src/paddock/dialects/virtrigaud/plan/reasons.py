"""Reasons of conditions and events (docs/spec/virtrigaud.md 1.1, 1.3, 1.5 and 2). They are stable: programs wait for them."""

from paddock.base import reasons as causes

SUCCESS = "ReconcileSuccess"
PROVIDER_ERROR = "ProviderError"
VALIDATION_ERROR = "ValidationError"
CREATING = "Creating"
DELETING = "Deleting"
UPDATING = "Updating"
WAITING = "WaitingForDependencies"
IN_PROGRESS = "TaskInProgress"
PROVIDER_TASK_LOST = causes.PROVIDER_TASK_LOST
MACHINE_LOST, ADOPTED_LOST = causes.MACHINE_LOST, causes.ADOPTED_LOST
DISK_SHRINKS = causes.DISK_SHRINKS
# A create was sent, and its outcome is not known.
CREATE_BEGUN = (CREATING, PROVIDER_ERROR)
# of images
IMPORTING = "Importing"
PREPARED = "Prepared"
MISSING_ON_PROVIDER = "MissingOnProvider"
WAITING_FOR_IMAGE = "WaitingForImage"
PREPARATION_FAILED = "PreparationFailed"
# of machines, beyond the first list
UNSUPPORTED = "UnsupportedByProvider"
SIZE_DIFFERS = "SizeDiffers"
PROVIDER_CONFLICT = "ProviderConflict"
CONSUMER_NOT_ALLOWED = "ConsumerNotAllowed"
RESTART_REQUIRED = "RestartRequired"
POWER_UNKNOWN = "PowerStateUnmanaged"
PLACED, PLACEMENT_VIOLATED = "Placed", "ConstraintsViolated"
HOOK_SUCCEEDED, HOOK_FAILED, HOOK_RUNNING = "Succeeded", "Failed", "Running"
# of Providers
DELETE_BLOCKED = "DeleteBlocked"
# of clones
CLONING, CUSTOMIZING, COMPLETED, POWERING_ON = "Cloning", "Customizing", "Completed", "PoweringOn"
SOURCE_NOT_FOUND = "SourceNotFound"
UNSUPPORTED_SOURCE = "UnsupportedSource"
LINKED_CLONE_UNSUPPORTED = "LinkedCloneUnsupported"
INSUFFICIENT_RESOURCES = "InsufficientResources"
CUSTOMIZATION_FAILED = "CustomizationFailed"
TARGET_EXISTS, TARGET_GONE = "TargetExists", "TargetGone"
TIMEOUT = "Timeout"
RETRYING = "Retrying"
# of migrations
SOURCE_NOT_READY, SOURCE_PROVIDER_NOT_READY = "SourceVMNotReady", "SourceProviderNotReady"
TARGET_PROVIDER_NOT_READY, TARGET_NOT_READY = "TargetProviderNotReady", "TargetVMNotReady"
STORAGE_ERROR, VALIDATION_FAILED = "StorageError", "ValidationFailed"
VALIDATION_STARTED, VALIDATION_COMPLETE = "ValidationStarted", "ValidationComplete"
SNAPSHOT_SELECTED, SNAPSHOT_COMPLETE, SNAPSHOT_SKIPPED = "SnapshotSelected", "SnapshotComplete", "SnapshotSkipped"
SNAPSHOTTING, EXPORTING, TRANSFERRING = "Snapshotting", "Exporting", "Transferring"
POWERING_OFF, SOURCE_STARTED = "PoweringOff", "SourceStarted"
EXPORT_COMPLETE, TRANSFER_COMPLETE, IMPORT_COMPLETE = "ExportComplete", "TransferComplete", "ImportComplete"
WAITING_FOR_MOUNT = "WaitingForStorageMount"
MIGRATION_STARTED, MIGRATION_COMPLETE, MIGRATION_FAILED = "MigrationStarted", "MigrationComplete", "MigrationFailed"
CLEANED_UP, CLEANUP_PENDING, CLEANUP_INCOMPLETE = "CleanedUp", "CleanupPending", "CleanupIncomplete"
SOURCE_KEPT = "SourceKept"
# of snapshots
CREATED = "Created"
EXPIRED = "Expired"
MACHINE_GONE = "VirtualMachineGone"
SCHEDULED, SUSPENDED = "Scheduled", "Suspended"
REVERTED, REVERTING, REVERT_FAILED = "Reverted", "Reverting", "RevertFailed"
