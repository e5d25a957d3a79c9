"""Vitistack's Machine and NetworkConfiguration, live (docs/spec/vitistack.md 3 and 4)."""
