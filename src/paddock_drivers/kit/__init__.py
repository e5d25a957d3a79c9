"""The parts that drivers share: refusals, progress of tasks, staging storage, transfers of disks, documents for guests."""
