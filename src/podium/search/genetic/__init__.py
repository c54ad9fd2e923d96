"""Genetic programming over readable policies: programs as values, and what breeds them."""

from podium.search.genetic.breeding import Brood, Offspring, breed, random_program
from podium.search.genetic.machine import interpreted
from podium.search.genetic.program import Program, complexity
from podium.search.genetic.reading import parse
from podium.search.genetic.seeds import seeds
from podium.search.genetic.simplify import simplify
from podium.search.genetic.writing import write

__all__ = [
    "Brood", "Offspring", "Program", "breed", "complexity", "interpreted", "parse",
    "random_program", "seeds", "simplify", "write",
]  # fmt: skip
