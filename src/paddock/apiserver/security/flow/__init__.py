"""How much of the server a client gets: flows, priority levels, fair queues (docs/guide/limits.md)."""
