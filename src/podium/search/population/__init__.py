"""The population: islands of members that behave differently from each other."""

from podium.search.population.archive import Archive
from podium.search.population.island import Island
from podium.search.population.member import Member

__all__ = ["Archive", "Island", "Member"]
