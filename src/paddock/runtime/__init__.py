"""What every controller stands on: informers, queues, elections, events. Knows no kind (docs/design/0007-runtime-and-client.md)."""
