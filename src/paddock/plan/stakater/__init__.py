"""What a Stakater machine waits for, what is done next, and what its status says (docs/spec/stakater.md 3 and 4). Pure."""
