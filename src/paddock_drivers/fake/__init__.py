"""The fake driver: machines in memory."""
