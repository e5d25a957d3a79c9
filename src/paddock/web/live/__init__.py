"""Objects of all kinds as rows, kept by one watch for each kind and identity."""
