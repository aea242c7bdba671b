"""Random numbers by name: each purpose has a stream of its own, whatever the seed.

Two purposes with one number would draw the same points from the same seed: methods that are compared on one seed would
look more alike than they are.
"""

import hashlib

import numpy as np

NUMBERS = {
    "tradition: draws": 1,
    "network: first labels": 11,
    "network: fit": 12,
    "network: ties": 13,
    "network: labels drawn from the belief": 14,
    "network: tuning": 15,
    "batchbald: states": 16,
}
"""Numbers that streams had before they had names; with them the same seed still draws the same points."""


def number_of(name: str) -> int:
    """The number of a stream: its old one, or the first 8 bytes of its name's hash."""
    return NUMBERS.get(name, int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]))


def stream(seed: int, name: str, *moment: int) -> np.random.Generator:
    """The generator for one purpose at one moment (numbers that tell it from others): derived, never stored."""
    return np.random.default_rng([seed, number_of(name), *moment])
