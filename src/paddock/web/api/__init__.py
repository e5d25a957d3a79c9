"""The API of the console: one module for each resource, each with its `ROUTES`."""
