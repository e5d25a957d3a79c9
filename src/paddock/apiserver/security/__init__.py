"""Who asks, whether they may, how much of it, and the record of it."""
