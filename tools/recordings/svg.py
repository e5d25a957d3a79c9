"""A recording as an SVG that plays by itself: the frames stand below each other behind a window, and move past it.

Waiting is cut; the caption says how long the scene took. Whoever asks for less motion sees the last frame.
"""

from collections.abc import Sequence
from html import escape
from itertools import pairwise

from tools.recordings.player import Frame, Recording, Row

# Nothing that shows for longer is missed.
LONGEST_SECONDS = 2.0
_LAST_SECONDS = 5.0
_CELL_WIDTH, _LINE_HEIGHT, _FONT_SIZE, _MARGIN, _BAR = 8.4, 18, 14, 12, 28
_BACKGROUND, _INK, _PALE = "#1e2430", "#d8dee9", "#8a94a6"
_COLOURS = {
    "black": "#4c566a",
    "red": "#e06c75",
    "green": "#98c379",
    "brown": "#e5c07b",
    "blue": "#61afef",
    "magenta": "#c678dd",
    "cyan": "#56b6c2",
    "white": "#e5e9f0",
}
_DOTS = ("#e06c75", "#e5c07b", "#98c379")


def draw(recording: Recording, title: str) -> str:
    """Return the picture."""
    width = recording.columns * _CELL_WIDTH + 2 * _MARGIN
    inner = recording.lines * _LINE_HEIGHT + _MARGIN
    height = inner + _BAR
    caption = f"{title} ({recording.seconds:.0f} s; waits are cut)"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" role="img">',
        f"<title>{escape(caption)}</title>",
        f"<style>{_style(recording.frames, inner)}</style>",
        f'<rect width="100%" height="100%" rx="8" fill="{_BACKGROUND}"/>',
        *(f'<circle cx="{18 + 16 * number}" cy="14" r="5" fill="{colour}"/>' for number, colour in enumerate(_DOTS)),
        f'<text x="{width / 2:.0f}" y="19" text-anchor="middle" fill="{_PALE}" style="font-size:12px">{escape(caption)}</text>',
        f'<svg x="0" y="{_BAR}" width="{width:.0f}" height="{inner:.0f}"><g class="reel">',
        *_frames(recording.frames, inner),
        "</g></svg></svg>",
    ]
    return "\n".join(parts) + "\n"


def pauses(frames: Sequence[Frame]) -> list[float]:
    """Return how long each frame shows."""
    between = [after.seconds - before.seconds for before, after in pairwise(frames)]
    return [*(min(each, LONGEST_SECONDS) for each in between), _LAST_SECONDS]


def _style(frames: Sequence[Frame], inner: float) -> str:
    shown = pauses(frames)
    whole, now = sum(shown), 0.0
    steps = []
    for number, each in enumerate(shown):
        steps.append(f"{100 * now / whole:.3f}%{{transform:translateY(-{number * inner:.0f}px)}}")
        now += each
    last = (len(frames) - 1) * inner
    text = f"text{{font:{_FONT_SIZE}px 'DejaVu Sans Mono',Menlo,Consolas,monospace;white-space:pre;fill:{_INK}}}"
    colours = "".join(f".{name}{{fill:{colour}}}" for name, colour in _COLOURS.items())
    reel = f".reel{{animation:play {whole:.2f}s steps(1,end) infinite}}"
    still = f"@media (prefers-reduced-motion){{.reel{{animation:none;transform:translateY(-{last:.0f}px)}}}}"
    return f"{text}{colours}.bold{{font-weight:bold}}{reel}@keyframes play{{{''.join(steps)}}}{still}"


def _frames(frames: Sequence[Frame], inner: float) -> list[str]:
    """Return the frames below each other; a row that was drawn before is drawn once."""
    known: dict[Row, str] = {}
    found = []
    for number, frame in enumerate(frames):
        rows = []
        for line, row in enumerate(frame.rows):
            if not row:
                continue
            y = number * inner + (line + 1) * _LINE_HEIGHT
            if row in known:
                rows.append(f'<use href="#{known[row]}" y="{y:.0f}"/>')
            else:
                known[row] = f"r{len(known)}"
                rows.append(_row(row, known[row], y))
        found.append("".join(rows))
    return found


def _row(row: Row, name: str, y: float) -> str:
    spans = "".join(
        f'<tspan x="{_MARGIN + each.column * _CELL_WIDTH:.1f}"{_look(each.colour, each.bold)}>{escape(each.text)}</tspan>' for each in row
    )
    return f'<defs><text id="{name}">{spans}</text></defs><use href="#{name}" y="{y:.0f}"/>'


def _look(colour: str, bold: bool) -> str:
    name = colour.removeprefix("bright")
    names = [*([name] if name in _COLOURS else []), *(["bold"] if bold else [])]
    return f' class="{" ".join(names)}"' if names else ""
