"""The cases, by subject."""
