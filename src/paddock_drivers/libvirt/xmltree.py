"""XML of libvirt, read without document types: neither entities nor external files are ever expanded."""

from xml.etree.ElementTree import Element, TreeBuilder, tostring
from xml.parsers import expat

from paddock.contract.errors import ErrorKind, ProviderError

# A domain with a hundred disks has less than a hundredth of it.
_MOST = 8 << 20


def parse(text: str) -> Element:
    """Return the root element; raises `ProviderError` for what is no XML, or has a document type. Names with a namespace are {URI}NAME."""
    if len(text) > _MOST:
        raise _unreadable("it is too large")
    builder = TreeBuilder()
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse
    parser.StartElementHandler = lambda tag, attributes: builder.start(_name(tag), {_name(key): value for key, value in attributes.items()})
    parser.EndElementHandler = lambda tag: builder.end(_name(tag))
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise _unreadable(f"line {error.lineno} cannot be read") from None
    return builder.close()


def text(element: Element) -> str:
    """Return an element as libvirt reads it."""
    return tostring(element, encoding="unicode")


def number(element: Element | None, default: int = 0) -> int:
    """Return the integer that an element holds."""
    content = (element.text or "").strip() if element is not None else ""
    return int(content) if content.isascii() and content.isdigit() else default


def content(element: Element, path: str) -> str:
    """Return the text of an element below, empty if there is none."""
    return (element.findtext(path) or "").strip()


def attribute(element: Element, path: str, name: str) -> str:
    """Return an attribute of an element below, empty if there is none."""
    found = element.find(path)
    return found.get(name, "") if found is not None else ""


def child(parent: Element, tag: str, value: str | None = None, **attributes: str) -> Element:
    """Append an element and return it."""
    made = Element(tag, {name.rstrip("_"): each for name, each in attributes.items()})
    made.text = value
    parent.append(made)
    return made


def _name(tag: str) -> str:
    return f"{{{tag}" if "}" in tag else tag


def _refuse(*_: object) -> None:
    raise _unreadable("it has a document type")


def _unreadable(why: str) -> ProviderError:
    return ProviderError(ErrorKind.INTERNAL, "cannot read the XML of libvirt", why=why)
