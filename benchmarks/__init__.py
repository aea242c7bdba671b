"""Benchmarks of altmas: the pools, the models under test and the experiments.

This package imports altmas and is never imported by it. Run a benchmark from the repository's root,
for example `python -m benchmarks.models_under_test`.
"""
