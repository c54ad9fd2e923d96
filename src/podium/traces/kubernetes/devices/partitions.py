"""Knows which part of a card a hardware partition is: MIG of NVIDIA, compute partitions of AMD."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

# https://docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-mig-profiles.html
_MIG = re.compile(r"(?P<slices>[1-7])g\.(?P<memory>[1-9][0-9]{0,2})gb")
_MIG_RESOURCE = re.compile(r"nvidia\.com/mig-(?P<profile>[1-7]g\.[1-9][0-9]{0,2}gb)[a-z.+-]*")
_FOUR_SLICES = frozenset({(1, 6), (2, 12), (4, 24), (1, 24), (2, 48), (4, 96)})

# https://instinct.docs.amd.com/projects/k8s-device-plugin/en/latest/user-guide/resource-allocation.html
_AMD_RESOURCE = re.compile(r"amd\.com/(?P<mode>[scdqt]px)_nps[1248]")
_AMD_PARTITIONS = {"spx": 1, "dpx": 2, "tpx": 3, "qpx": 4, "cpx": 8}


@dataclass(frozen=True, slots=True)
class MigProfile:
    """Is a MIG device of so many compute slices and GB, such as 1g.5gb."""

    slices: int
    memory_gb: int

    @property
    def of_slices(self) -> int:
        """Counts the compute slices of the card: seven, four on A30 and RTX PRO 6000."""
        return 4 if (self.slices, self.memory_gb) in _FOUR_SLICES else 7

    @property
    def share(self) -> Fraction:
        """Gives the part of a card that one device is."""
        return Fraction(self.slices, self.of_slices)

    def most_on_card(self, card_memory_mib: int) -> int:
        """Counts the devices that one card holds; compute or memory slices run out first.

        >>> MigProfile(1, 10).most_on_card(81920), MigProfile(1, 10).most_on_card(40960)
        (7, 4)
        """
        by_compute = self.of_slices // self.slices
        if not card_memory_mib:
            return by_compute
        memory_slices = 4 if self.of_slices == 4 else 8
        taken = max(1, round(memory_slices * self.memory_gb * 1024 / card_memory_mib))
        return max(1, min(by_compute, memory_slices // taken))


def mig_profile(text: str) -> MigProfile | None:
    """Finds the profile in a product, an attribute or an expression, if there is one.

    >>> mig_profile("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb")
    MigProfile(slices=1, memory_gb=5)
    """
    match = _MIG.search(text)
    return MigProfile(int(match["slices"]), int(match["memory"])) if match else None


def partition_share(resource: str) -> Fraction | None:
    """Gives the part of a card that a resource counts, None where it counts no partitions.

    >>> partition_share("nvidia.com/mig-3g.20gb"), partition_share("amd.com/cpx_nps4")
    (Fraction(3, 7), Fraction(1, 8))
    """
    match = _MIG_RESOURCE.fullmatch(resource)
    if match:
        profile = mig_profile(match["profile"])
        return profile.share if profile else None
    return amd_share(resource)


def amd_share(resource: str) -> Fraction | None:
    """Gives the part of a card that a partition mode of AMD such as amd.com/cpx_nps4 makes."""
    match = _AMD_RESOURCE.fullmatch(resource)
    return Fraction(1, _AMD_PARTITIONS[match["mode"]]) if match else None
