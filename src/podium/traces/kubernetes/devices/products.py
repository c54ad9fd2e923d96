"""Knows the memory of common GPU products, for nodes that do not say it."""

from __future__ import annotations

import re

# MiB as the drivers report them; the first pattern found in the product counts.
_MEMORY_MIB = tuple(
    (re.compile(pattern), memory_mib)
    for pattern, memory_mib in (
        (r"GB300|B300", 275040),
        (r"GB200|B200", 183359),
        (r"GH200", 97871),
        (r"H200", 143771),
        (r"H100.*(NVL|94GB)", 95830),
        (r"H100.*96GB", 97871),
        (r"H(100|800)", 81559),
        (r"H20", 97871),
        (r"A(100|800).*80G", 81920),
        (r"A(100|800)", 40960),
        (r"A6000", 49140),
        (r"RTX.*6000.*ADA", 49140),
        (r"A40\b", 46068),
        (r"A30\b", 24576),
        (r"A16\b", 15356),
        (r"A10G?\b", 23028),
        (r"A2\b", 15356),
        (r"L40S?\b", 46068),
        (r"L4\b", 23034),
        (r"V100.*(32G|M32)", 32768),
        (r"V100", 16384),
        (r"P100", 16384),
        (r"P40\b", 24576),
        (r"P4\b", 7680),
        (r"\bT4\b", 15360),
        (r"RTX.*5090", 32607),
        (r"RTX.*[34]090", 24564),
        (r"MI355X|MI350X", 294912),
        (r"MI325X", 262144),
        (r"MI30[08]X", 196608),
        (r"MI300A", 131072),
        (r"MI2(50X?|10)", 65536),  # an MI250 is two devices of 64 GiB
        (r"MI100", 32768),
        (r"MAX.1550", 131072),
        (r"MAX.1100", 49152),
        (r"FLEX.170", 16384),
        (r"FLEX.140", 6144),
    )
)

# https://github.com/ROCm/amdgpu/blob/master/include/pci_ids lists them all.
_AMD_DEVICES = {
    "738c": "MI100", "7408": "MI250X", "740c": "MI250X", "740f": "MI210", "74a0": "MI300A",
    "74a1": "MI300X", "74a2": "MI308X", "74a5": "MI325X", "74b5": "MI300X", "75a0": "MI350X",
    "75a3": "MI355X",
}  # fmt: skip


def known_memory_mib(product: str) -> int:
    """Gives the memory of one card of a product, 0 where it is not known.

    >>> [known_memory_mib(product) for product in ("Tesla-T4", "NVIDIA-A100-SXM4-40GB", "")]
    [15360, 40960, 0]
    """
    # Underscores join words in labels of AMD and Intel, and count as letters in patterns.
    name = product.upper().replace("_", "-")
    return next((mib for pattern, mib in _MEMORY_MIB if pattern.search(name)), 0)


def amd_product(device_id: str) -> str:
    """Names the product of an AMD device id, or repeats the id."""
    return _AMD_DEVICES.get(device_id.lower().removeprefix("0x"), device_id)


def product_name(text: str) -> str:
    """Spells the name that a driver gives as a label spells it.

    >>> product_name("NVIDIA-Tesla V100-PCIE-32GB"), product_name("NVIDIA-NVIDIA GeForce RTX 4090")
    ('NVIDIA-Tesla-V100-PCIE-32GB', 'NVIDIA-GeForce-RTX-4090')
    """
    return "-".join(text.split()).replace("NVIDIA-NVIDIA", "NVIDIA")
