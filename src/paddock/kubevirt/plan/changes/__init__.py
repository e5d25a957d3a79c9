"""The effect of a field's change on an existing machine, and the object that each field names."""
