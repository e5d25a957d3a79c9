"""Reasons of conditions and events (docs/spec/virtrigaud.md 1.1, 1.3, 1.5 and 2). They are stable: programs wait for them."""

SUCCESS = "ReconcileSuccess"
PROVIDER_ERROR = "ProviderError"
VALIDATION_ERROR = "ValidationError"
CREATING = "Creating"
DELETING = "Deleting"
UPDATING = "Updating"
WAITING = "WaitingForDependencies"
IN_PROGRESS = "TaskInProgress"
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
PROVIDER_CONFLICT = "ProviderConflict"
CONSUMER_NOT_ALLOWED = "ConsumerNotAllowed"
RESTART_REQUIRED = "RestartRequired"
POWER_UNKNOWN = "PowerStateUnmanaged"
HOOK_SUCCEEDED, HOOK_FAILED, HOOK_RUNNING = "Succeeded", "Failed", "Running"
# of Providers
DELETE_BLOCKED = "DeleteBlocked"
