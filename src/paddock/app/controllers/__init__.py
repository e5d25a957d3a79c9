"""Which controllers run beside the server, and what each is given."""
