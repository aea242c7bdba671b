"""Streams of random numbers by name."""

import re
from pathlib import Path

import numpy as np

from altmas.streams import NUMBERS, number_of, stream

SOURCE = Path(__file__).parent.parent / "src" / "altmas"


def test_a_stream_is_the_same_each_time_and_another_under_each_name_seed_and_moment():
    draws = {
        tuple(stream(seed, name, moment).random(3))
        for seed in (0, 1)
        for name in ("lure: draws", "ppi: draws")
        for moment in (0, 5)
    }
    assert len(draws) == 8
    np.testing.assert_array_equal(stream(1, "x", 2).random(3), stream(1, "x", 2).random(3))


def test_numbers_from_before_are_kept_and_no_two_streams_share_one():
    assert stream(3, "tradition: draws", 4).random() == np.random.default_rng([3, 1, 4]).random()
    used = set()
    for path in (SOURCE / "methods").rglob("*.py"):
        used |= set(
            re.findall(
                r'"([\w-]+: [\w ]+)"', " ".join(re.findall(r"^[A-Z, ]+ = .*$|stream\(.*$", path.read_text(), re.M))
            )
        )
    assert {"stratified: draws", "network: fit", "spe: fit"} <= used and len(used) >= 18
    numbers = [number_of(name) for name in used | set(NUMBERS)]
    assert len(numbers) == len(set(numbers))
