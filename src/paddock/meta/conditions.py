"""Conditions: what a controller has observed, for people and for `kubectl wait`."""

from typing import Annotated

from paddock.schema.field import Field, Object, Time


class Condition(Object):
    """One observed aspect of an object."""

    type: Annotated[str, Field("The aspect.", required=True)] = ""
    status: Annotated[str, Field("Whether it holds.", required=True, enum=("True", "False", "Unknown"))] = ""
    reason: Annotated[str | None, Field("One word for programs.", max_length=1024)] = None
    message: Annotated[str | None, Field("A sentence for people: what, why, what to do.", max_length=32768)] = None
    lastTransitionTime: Annotated[Time | None, Field("When the status last changed.")] = None
    lastProbeTime: Annotated[Time | None, Field("When it was last looked at.", nullable=True)] = None
    observedGeneration: Annotated[int | None, Field("The generation this was observed for.", ge=0)] = None
