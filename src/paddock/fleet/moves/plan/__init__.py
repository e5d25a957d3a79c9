"""Moves of machines between servers: decisions about steps, objects and obstacles (docs/design/0023-move.md). Pure."""
