"""Connects the agent with the store: records become observations, and the state a checkpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from podium.online import Agent, Observation, Parameters
from podium.store import SUCCEEDED, ObservationRecord

_CHECKSUM = "sha256"


class AgentLearner:
    """Feeds an agent from a follower; callers always get the current agent."""

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters
        self.agent = Agent(parameters)

    def observe(self, record: ObservationRecord) -> None:
        """Learns from an observation."""
        self.agent.observe(observation_of(record))

    def forget(self, names: Sequence[tuple[str, str]]) -> None:
        """Forgets job types and GPU types, as though they had never been observed."""
        jobs = {name for kind, name in names if kind == "job_type"}
        self.agent.forget_all(jobs, {name for kind, name in names if kind == "gpu_type"})

    def state(self) -> Mapping[str, Any]:
        """Returns all that was learned, with a checksum: a changed digit would go unnoticed."""
        state = self.agent.as_object()
        return {**state, _CHECKSUM: _checksum(state)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Replaces all that was learned.

        Raises:
            KeyError: or whatever else, where the state is none that was ever saved.
            ValueError: it is not what was saved.
            UsageError: it was learned with other features.
        """
        learned = dict(state)
        if learned.pop(_CHECKSUM) != _checksum(learned):
            raise ValueError("the checksum does not match")
        self.agent = Agent.from_object(self._parameters, learned)


def _checksum(state: Mapping[str, Any]) -> str:
    return sha256(json.dumps(state, separators=(",", ":")).encode()).hexdigest()


def observation_of(record: ObservationRecord) -> Observation:
    """Turns a stored record into an observation for the agent."""
    return Observation(
        record.job_type,
        record.gpu_type,
        record.runtime_s,
        record.features,
        record.colocated_job_types,
        record.outcome == SUCCEEDED,
        record.job_id or "",
    )
