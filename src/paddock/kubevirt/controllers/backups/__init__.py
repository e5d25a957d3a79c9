"""Controllers of backups of running machines."""
