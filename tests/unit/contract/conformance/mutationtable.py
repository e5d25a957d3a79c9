"""Every mutation, by name."""

from tests.unit.contract.conformance import broken_data, broken_extensions, broken_hardware, broken_machines
from tests.unit.contract.conformance.broken import MUTATIONS, Mutation

__all__ = ["MODULES", "MUTATIONS", "Mutation"]

# Importing a module registers its mutations.
MODULES = (broken_data, broken_extensions, broken_hardware, broken_machines)
