"""New machines from a few words: `paddock run`. Everything here is pure but `readiness`, which only reads objects."""
