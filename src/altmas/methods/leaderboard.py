"""What the leaderboard says of each method: written by `python -m benchmarks.method_figures`."""

FIGURES: dict[str, tuple[float | None, float]] = {
    "assured": (0.982, 9.6),
    "altmas": (None, 0.381),
    "bald": (None, 0.0385),
    "stratified": (0.968, 1.1),
    "sawade": (0.965, 2.63),
    "druck": (0.969, 3.15),
    "oasis": (0.953, 7.66),
    "lure": (0.986, 1.66),
    "ppi": (0.974, 1.72),
    "active-inference": (0.98, 3.18),
    "paula": (0.955, 0.767),
    "adastrat": (0.969, 1.66),
    "katariya": (0.967, 0.997),
    "batchbald": (None, 0.0616),
    "ase": (None, 0.0385),
    "xwed": (None, 0.0249),
    "spe": (0.415, 0.433),
    "tradition": (0.949, 1.0),
    "trust": (None, 0.0712),
}
"""{method: (mean coverage of its 95 % intervals, None if it gives none; label value)}."""

FIGURES_MEAN = "in parentheses: mean coverage and label value of the leaderboard at 400 labels"
