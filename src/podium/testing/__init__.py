"""The contract of a policy as a check that anyone can run on their own."""

from podium.testing.check import check_policy
from podium.testing.report import Finding, Report

__all__ = ["Finding", "Report", "check_policy"]
