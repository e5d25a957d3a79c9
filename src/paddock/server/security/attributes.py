"""The attributes of an authorization question."""

import msgspec

from paddock.server.admission.world import AccessQuestion


class Attributes(msgspec.Struct, frozen=True):
    """One request, as rules see it. `resource` with its subresource, or `path` for what is outside the API groups."""

    user: str
    groups: tuple[str, ...]
    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def is_resource(self) -> bool:
        """True when the question is about a resource."""
        return not self.path

    @property
    def full_resource(self) -> str:
        """`plural/subresource`."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    def denied(self) -> str:
        """The sentence of a refusal."""
        if not self.is_resource:
            return f'User "{self.user}" cannot {self.verb} path "{self.path}"'
        where = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        return f'User "{self.user}" cannot {self.verb} resource "{self.full_resource}" in API group "{self.group}" {where}'


def attributes_of(question: AccessQuestion) -> Attributes:
    """Return the attributes for a question of an expression."""
    return Attributes(
        question.user,
        question.groups,
        question.verb,
        question.group,
        question.resource,
        question.subresource,
        question.namespace,
        question.name,
        question.path,
    )
