"""Simulated guests: an engine that models machines and runs none (docs/design/0034-simulated-guests.md)."""
