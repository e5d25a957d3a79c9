"""Decisions about Vitistack's machines and networks: from the observed state to actions and status (docs/spec/vitistack.md 3, 4)."""
