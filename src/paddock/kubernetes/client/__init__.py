"""The API's client: one `Client`, over HTTP or inside the server's process (docs/design/0007-runtime-and-client.md)."""
