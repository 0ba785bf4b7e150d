"""What the statistical tests promise together: one false alarm in a million runs, shared among them in equal parts."""

FAMILY = 1e-6
TESTS = 60
LEVEL = FAMILY / TESTS
