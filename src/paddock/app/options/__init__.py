"""The options of a start, and the settings that they become."""
