"""What all hooks of one event say together. Pure.

Denial goes before the question, and that before permission; whoever ends the turn ends it. So
the decision does not depend on the order of the hooks. Reasons, contexts and changes of the input
keep the order in which the hooks are configured.

Source: Crush, hooks, aggregation.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from crush_kernel.hooks.matcher import MatchedHook
from crush_kernel.hooks.outcome import Opinion, Outcome
from crush_kernel.messages import JsonObject

_STRICTEST_FIRST: Final[tuple[Opinion, ...]] = ("deny", "ask", "allow")


@dataclass(frozen=True, slots=True)
class HookRun:
    """A hook that has run, and what it said."""

    matched: MatchedHook
    outcome: Outcome

    @property
    def label(self) -> str:
        """Return what to call the hook."""
        return self.matched.hook.label


@dataclass(frozen=True, slots=True)
class Verdict:
    """What all hooks say together."""

    runs: tuple[HookRun, ...] = ()
    """In the order in which they are configured."""
    decision: Opinion | None = None
    is_halt: bool = False
    """Whether the turn is to end."""
    reason: str = ""
    """Of those who deny or end the turn; else of those who want a person asked."""
    context: str = ""
    """What the model is to read besides."""
    input: JsonObject | None = None
    """What the tool gets in place of its input, if that is changed."""

    @property
    def is_refusal(self) -> bool:
        """Whether what was about to happen must not."""
        return self.is_halt or self.decision == "deny"

    @property
    def deciders(self) -> str:
        """Return the hooks that the decision comes from, for people: `check.sh, audit`."""
        return ", ".join(dict.fromkeys(each.label for each in self._deciding()))

    def _deciding(self) -> Iterator[HookRun]:
        for each in self.runs:
            said = each.outcome
            if (self.is_halt and said.is_halt) or (
                self.decision is not None and said.opinion == self.decision
            ):
                yield each


SILENCE: Final = Verdict()
"""What is said where there are no hooks."""


def verdict(runs: tuple[HookRun, ...], given: JsonObject | None = None) -> Verdict:
    """Return what hooks say together.

    Args:
        runs: what each says, in the order in which they are configured.
        given: the tool's input; without it nothing can be changed in it.
    """
    said = [each.outcome for each in runs]
    opinions = {each.opinion for each in said}
    decision: Opinion | None = next((each for each in _STRICTEST_FIRST if each in opinions), None)
    is_halt = any(each.is_halt for each in said)
    return Verdict(
        runs=runs,
        decision=decision,
        is_halt=is_halt,
        reason=_joined(_reasons(said, decision, is_halt=is_halt)),
        context=_joined(each.context for each in said),
        input=None if given is None or is_halt or decision == "deny" else _patched(given, said),
    )


def _reasons(said: Iterable[Outcome], decision: Opinion | None, *, is_halt: bool) -> Iterator[str]:
    wanted = "deny" if is_halt else decision
    if wanted == "allow":
        return
    for each in said:
        if each.is_halt or (wanted is not None and each.opinion == wanted):
            yield each.reason


def _patched(given: JsonObject, said: Iterable[Outcome]) -> JsonObject | None:
    """Return `given` with what hooks replace in it, `None` if that is nothing.

    Keys are names and nothing else: one with a dot in it is a key with a dot.
    """
    changed: dict[str, JsonValue] = dict(given)
    for each in said:
        changed |= each.patch or {}
    return None if _are_same(changed, given) else changed


def _are_same(one: JsonObject, other: JsonObject) -> bool:
    """Return whether both are the same JSON; to Python `1` and `true` are equal, too."""
    try:
        return json.dumps(one, sort_keys=True) == json.dumps(dict(other), sort_keys=True)
    except RecursionError:
        return False


def _joined(texts: Iterable[str]) -> str:
    return "\n".join(filter(None, texts))
