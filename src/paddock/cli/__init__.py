"""The command line. Commands that need no server read manifests and print; nothing here imports the server, the engine or a driver."""
