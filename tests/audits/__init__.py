"""Attacks on random designs of every query, replays of random fits, and broken variants: ``make audit``."""
