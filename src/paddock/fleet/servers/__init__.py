"""The objects of a server: its kinds, what surrounds an object, and what a write would change."""
