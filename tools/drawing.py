"""What the pictures of the documents are drawn with: boxes, arrows and texts as SVG."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

INK, PALE, LINE = "#1f2933", "#52606d", "#9aa5b1"
ACTS, PURE, BASE, PLANNED = "#dbeafe", "#dcfce7", "#f1f5f9", "#ffffff"
_FONT = "font-family=\"'DejaVu Sans', Verdana, sans-serif\""
TITLE = f'font-size="15" font-weight="bold" fill="{INK}"'
PLAIN = f'font-size="13" fill="{INK}"'
SMALL = f'font-size="12" fill="{PALE}"'
# DejaVu Sans is wide: its average letter has 0.62 of the size.
WIDE = 12 * 0.62
_ARROW = (
    '<marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse">'
    f'<path d="M0 0 10 5 0 10z" fill="{PALE}"/></marker>'
)


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle with a title and, below it, smaller lines."""

    x: float
    y: float
    width: float
    height: float
    title: str
    lines: tuple[str, ...] = ()
    fill: str = BASE
    dashed: bool = False

    def svg(self) -> Iterator[str]:
        """Yield its elements."""
        dash = ' stroke-dasharray="5 4"' if self.dashed else ""
        place = f'x="{self.x:g}" y="{self.y:g}" width="{self.width:g}" height="{self.height:g}"'
        yield f'<rect {place} rx="6" fill="{self.fill}" stroke="{LINE}"{dash}/>'
        middle = self.x + self.width / 2
        top = self.y + self.height / 2 - 8 * len(self.lines) + 5
        yield caption(middle, top, self.title, TITLE)
        for number, line in enumerate(self.lines, 1):
            yield caption(middle, top + 2 + 16 * number, line, SMALL)

    @property
    def right(self) -> tuple[float, float]:
        """The middle of the right edge."""
        return self.x + self.width, self.y + self.height / 2

    @property
    def left(self) -> tuple[float, float]:
        """The middle of the left edge."""
        return self.x, self.y + self.height / 2

    @property
    def bottom(self) -> tuple[float, float]:
        """The middle of the lower edge."""
        return self.x + self.width / 2, self.y + self.height

    @property
    def top(self) -> tuple[float, float]:
        """The middle of the upper edge."""
        return self.x + self.width / 2, self.y


def caption(x: float, y: float, words: str, style: str, anchor: str = "middle") -> str:
    """Return a line of text."""
    return f'<text x="{x:g}" y="{y:g}" {style} text-anchor="{anchor}">{escape(words)}</text>'


def arrow(start: tuple[float, float], end: tuple[float, float], both: bool = False) -> str:
    """Return an arrow between two points, with one tip or with both."""
    tips = 'marker-end="url(#tip)"' + (' marker-start="url(#tip)"' if both else "")
    return f'<path d="M{start[0]:g} {start[1]:g} L{end[0]:g} {end[1]:g}" stroke="{PALE}" stroke-width="1.5" fill="none" {tips}/>'


def picture(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    """Return the whole picture."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" {_FONT}>'
    ground = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    return "\n".join([head, f"<title>{escape(title)}</title>", f"<defs>{_ARROW}</defs>", ground, *parts, "</svg>"]) + "\n"
