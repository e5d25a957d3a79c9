"""The use of machines over time, for charts: rings of fixed size, sampled, kept on disk, and served as a subresource."""
