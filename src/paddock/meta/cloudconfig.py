"""User data as cloud-init reads it: headers, and whether a `#cloud-config` document is one."""

import yaml

# The first line decides how cloud-init treats a document.
_HEADERS = (
    "#cloud-config",
    "#!",
    "#include",
    "#part-handler",
    "#cloud-boothook",
    "## template: jinja",
    "Content-Type:",
    "MIME-Version:",
)


def has_known_header(text: str) -> bool:
    """Whether cloud-init would know what to do with the document."""
    return text.startswith(_HEADERS)


def problem(text: str) -> str:
    """What is wrong with a `#cloud-config` document, with its line; the empty text when nothing is, or when it is none."""
    if not text.startswith("#cloud-config"):
        return ""
    try:
        root = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark else ""
        return f"{line}{getattr(error, 'problem', None) or 'not readable as YAML'}"
    if root is None or isinstance(root, yaml.MappingNode):
        return ""
    return f"line {root.start_mark.line + 1}: must be a mapping, not a {'list' if isinstance(root, yaml.SequenceNode) else 'single value'}"
