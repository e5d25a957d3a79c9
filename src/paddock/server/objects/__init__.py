"""The stored objects as clients see them: bytes in memory, read by look-up and join, written by one decision each, followed by cursors."""
