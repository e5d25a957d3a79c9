"""What a change of a field does to a machine that exists, and which field names which object."""
