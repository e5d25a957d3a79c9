"""What the server does by itself, level-triggered and through the same verbs as any client."""
