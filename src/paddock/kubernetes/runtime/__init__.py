"""The base of every controller: informers, queues, leader election, events. It knows no kind (docs/design/0007-runtime-and-client.md)."""
