"""What is decided about Vitistack's machines and networks: from what is seen to what to do and to say (docs/spec/vitistack.md 3, 4)."""
