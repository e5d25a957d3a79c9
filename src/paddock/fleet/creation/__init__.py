"""New machines from a few words: `paddock run`. Everything here is pure but `takennames`, which only reads objects."""
