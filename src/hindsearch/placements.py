"""Where the hint stands in the teacher's prompt: the paper (arXiv 2608.01597) says "in front", and no more."""

from dataclasses import dataclass

from hindsearch.interfaces import Placed


@dataclass(frozen=True)
class UserHead:
    """First in the user's message, before the task."""

    def __call__(self, hint: str) -> Placed:
        return Placed(head=hint)


@dataclass(frozen=True)
class UserTail:
    """Last in the user's message, after the question."""

    def __call__(self, hint: str) -> Placed:
        return Placed(tail=hint)


@dataclass(frozen=True)
class RawPrefix:
    """Before everything, the chat format's first marker included."""

    def __call__(self, hint: str) -> Placed:
        return Placed(raw=hint)


@dataclass(frozen=True)
class SystemMessage:
    """A system message of its own; needs a chat format that has one."""

    def __call__(self, hint: str) -> Placed:
        return Placed(system=hint)
