"""Measurements: each a ratio to a peer, taken side by side in one run."""
