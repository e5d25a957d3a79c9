"""Decisions about networks: definitions, Services, policies."""
