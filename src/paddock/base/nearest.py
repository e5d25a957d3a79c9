"""The known word a user most likely meant."""

from collections.abc import Iterable

_LONGEST = 64


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word with the fewest edits to `word`, if that is few enough to be a slip; ties go to the first in order."""
    if len(word) > _LONGEST:
        return None
    limit = max(1, len(word) // 3)
    best, best_cost = None, limit + 1
    for candidate in sorted(known):
        if candidate.lower() == word.lower():
            return candidate
        cost = _edits(word.lower(), candidate.lower(), best_cost)
        if cost < best_cost:
            best, best_cost = candidate, cost
    return best


def _edits(left: str, right: str, limit: int) -> int:
    """Insertions, deletions, replacements and swaps of neighbours between two words; `limit` when there are at least as many."""
    if abs(len(left) - len(right)) >= limit:
        return limit
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        before, above, row = row, before, [i]
        for j, b in enumerate(right, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, above[j - 2] + 1)
            row.append(cost)
        if min(row) >= limit:
            return limit
    return min(row[-1], limit)
