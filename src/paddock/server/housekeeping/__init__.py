"""The server's own work, level-triggered and through the same verbs as any client."""
