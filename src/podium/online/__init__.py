"""Online learning: run times of job types on GPU types, interference, and what to try next."""

from podium.online.agent import Agent
from podium.online.answer import Answer, Figures
from podium.online.assignment import Assignment, assign_costs
from podium.online.cost import Candidate
from podium.online.observation import Observation, Place, Request
from podium.online.parameters import FEATURES, Parameters, Prior
from podium.online.sinkhorn import transport_plan

__all__ = [
    "FEATURES", "Agent", "Answer", "Assignment", "Candidate", "Figures", "Observation",
    "Parameters", "Place", "Prior", "Request", "assign_costs", "transport_plan",
]  # fmt: skip
