"""The ways into a guest: its agent, its console and display, its log, its ports. Commands use them; nothing here parses a command line."""
