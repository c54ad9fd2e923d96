"""Keeps what was found: islands of members, each different in what it does."""

from podium.search.population.archive import Archive
from podium.search.population.island import Island
from podium.search.population.member import Member

__all__ = ["Archive", "Island", "Member"]
