"""Decisions about a Stakater machine: its prerequisites, its next step, its status (docs/spec/stakater.md 3 and 4). Pure."""
