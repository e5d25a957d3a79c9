"""Services: which machines they lead to, where they are listened for, and what the API says of that."""
