"""Discovery and OpenAPI documents: what the server serves, as clients ask for it."""
