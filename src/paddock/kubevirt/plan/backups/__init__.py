"""Decisions about backups of machines, and about following their changed blocks. Pure."""
