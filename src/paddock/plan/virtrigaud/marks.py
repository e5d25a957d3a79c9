"""Names that VirtRigaud's controllers read or write in metadata and statuses."""

MACHINE_FINALIZER = "virtualmachine.infra.virtrigaud.io/finalizer"
PROVIDER_FINALIZER = "provider.infra.virtrigaud.io/finalizer"
ADOPTED_LABEL = "virtrigaud.io/adopted"
FORCE_DELETE = "virtrigaud.io/force-delete"
ORPHAN_ON_DELETE = "virtrigaud.io/orphan-on-delete"
# A user allows that a running machine is shut down and started again to apply a change.
ALLOW_RESTART = "virtrigaud.io/allow-restart"
# Namespaces whose machines may refer to an object: names separated by commas, or *.
CONSUMERS = "virtrigaud.io/consumer-namespaces"
# Members of status.provider that Paddock writes; a provider's own members of these names are left out.
OWN_PREFIX = "paddock.io/"
DISKS = "paddock.io/disks"
TRUE = "true"
