"""Connects the agent with the store: records become observations, and the state a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podium.online import Agent, Observation, Parameters
from podium.store import SUCCEEDED, ObservationRecord


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
        """Returns all that was learned."""
        return self.agent.as_object()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Replaces all that was learned.

        Raises:
            KeyError: or whatever else, where the state is none that was ever saved.
            UsageError: it was learned with other features.
        """
        if "format" not in state:
            raise KeyError("format")
        self.agent = Agent.from_object(self._parameters, state)


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
