"""The pages of docs/reference that are made of the code beside the dialects: settings, events, conditions and metrics."""
