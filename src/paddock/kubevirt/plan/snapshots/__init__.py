"""Decisions about snapshots, restores and clones of machines."""
