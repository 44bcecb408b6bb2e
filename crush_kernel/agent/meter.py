"""What a turn has come to, its sub-agents included: the one place that its limits look at."""

from dataclasses import dataclass, field

import anyio

from crush_kernel.agent.steps import SoFar
from crush_kernel.history.conversation import Conversation
from crush_kernel.messages import Usage
from crush_kernel.providers.base import ModelInfo


@dataclass(slots=True)
class Meter:
    """Adds up one turn of a notebook; each model's tokens count at its own price."""

    conversation: Conversation
    """Of the notebook. What sub-agents use counts in it as soon as it is known."""
    requests: int = 0
    """How many were sent, whoever sent them."""
    _models: dict[str, ModelInfo] = field(default_factory=dict[str, ModelInfo])
    _started: float = field(default_factory=anyio.current_time)

    def count_request(self, info: ModelInfo) -> None:
        """Note that a request goes to the model of `info`."""
        self.requests += 1
        self.note_model(info)

    def note_model(self, info: ModelInfo) -> None:
        """Note what the tokens of a model cost."""
        self._models[info.label] = info

    @property
    def usage(self) -> Usage:
        """What all requests have used."""
        return sum(self.conversation.used_by_model.values(), Usage())

    def cost(self, spent: dict[str, Usage]) -> float | None:
        """Return what `spent` costs in US dollars; `None` where a price that counts is unknown."""
        charges = [self._charge(label, usage) for label, usage in spent.items()]
        known = [charge for charge in charges if charge is not None]
        return sum(known) if charges and len(known) == len(charges) else None

    def so_far(self, *, own_requests: int) -> SoFar:
        """Return what the turn has come to, for one of those whose requests it consists of.

        Args:
            own_requests: how many of the requests whoever asks has sent.
        """
        used = self.conversation.used_by_model
        charges = [self._charge(label, usage) for label, usage in used.items()]
        return SoFar(
            duration_s=anyio.current_time() - self._started,
            cost_usd=sum(charge for charge in charges if charge is not None),
            tokens=self.usage.context_tokens,
            other_steps=self.requests - own_requests,
        )

    def _charge(self, label: str, usage: Usage) -> float | None:
        info = self._models.get(label)
        return None if info is None else info.cost(usage)
