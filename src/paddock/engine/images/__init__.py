"""Images: where they come from, how they are verified and kept, and how they are built."""
