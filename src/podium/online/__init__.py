"""Online learning: run times of job types on GPU types, interference, and what to try next."""

from podium.online.agent import Agent
from podium.online.answer import Answer, Assignment, Figures
from podium.online.assignment import assign_costs
from podium.online.cost import Candidate
from podium.online.observation import Observation, Place, Request
from podium.online.parameters import FEATURES, Parameters, Prior

__all__ = [
    "FEATURES", "Agent", "Answer", "Assignment", "Candidate", "Figures", "Observation",
    "Parameters", "Place", "Prior", "Request", "assign_costs",
]  # fmt: skip
