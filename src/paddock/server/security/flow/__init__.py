"""The share of the server that a client gets: flows, priority levels, fair queues (docs/run/limits.md)."""
