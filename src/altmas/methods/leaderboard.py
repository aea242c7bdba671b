"""What the leaderboard says of each method: written by `python -m benchmarks.method_figures`."""

FIGURES: dict[str, tuple[float | None, float]] = {
    "assured": (0.98, 4.82),
    "altmas": (None, 0.697),
    "bald": (None, 0.066),
    "stratified": (0.975, 1.73),
    "sawade": (0.97, 2.51),
    "druck": (0.973, 2.75),
    "oasis": (0.975, 8.57),
    "lure": (0.986, 1.47),
    "ppi": (0.98, 1.71),
    "active-inference": (0.975, 3.07),
    "paula": (0.966, 0.776),
    "adastrat": (0.968, 1.69),
    "katariya": (0.964, 1.07),
    "batchbald": (None, 0.125),
    "ase": (None, 0.0667),
    "xwed": (None, 0.046),
    "spe": (0.818, 0.554),
    "tradition": (0.97, 1.0),
    "trust": (None, 0.0712),
}
"""{method: (mean coverage of its 95 % intervals, None if it gives none; label value)}."""

FIGURES_MEAN = "in parentheses: mean coverage and label value of the leaderboard at 400 labels"
