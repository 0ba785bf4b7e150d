"""``make audit``: attack all queries, replay all fits, and try the broken variants."""

import argparse
import sys
import time

from audits.broken import BROKEN
from audits.campaign import attack_designs, replay_fits
from matrixdp.audit.replay import Tally
from matrixdp.display import format_table


def main() -> int:
    """Print three tables; the exit code is 1 if a claim was exceeded or a broken variant was missed."""
    parser = argparse.ArgumentParser(prog="make audit", description=__doc__)
    parser.add_argument("--pairs", type=int, default=1_000_000, help="pairs of neighbouring data sets to compare")
    parser.add_argument("--replays", type=int, default=5_000, help="fits to replay")
    parser.add_argument("--seconds", type=float, default=600.0, help="stop after this time")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start = time.monotonic()
    caught = [(name, is_caught()) for name, is_caught in BROKEN.items()]
    print(format_table(["broken variant", ""], [[name, "caught" if found else "NOT CAUGHT"] for name, found in caught]))
    attacks = attack_designs(pairs=options.pairs, seconds=options.seconds / 2, seed=options.seed)
    _print_tallies("attacked", "designs", attacks)
    left = options.seconds - (time.monotonic() - start)
    replays = replay_fits(replays=options.replays, seconds=left, seed=options.seed)
    _print_tallies("replayed", "fits", replays)
    above = sum(len(tally.broken) for tally in [*attacks.values(), *replays.values()])
    missed = sum(not found for _, found in caught)
    skipped = sum(tally.skipped for tally in replays.values())
    print(
        f"\n{sum(tally.pairs for tally in attacks.values()):,} pairs, {sum(t.audits for t in replays.values()):,} "
        f"replays: {above} above their claim, {skipped} parts of results not compared. "
        f"{len(caught)} broken variants: {missed} not caught."
    )
    return int(bool(above or missed))


def _print_tallies(title: str, unit: str, tallies: dict[str, Tally]) -> None:
    rows = []
    for name, one in tallies.items():
        counts = (f"{number:,}" for number in (one.audits, one.pairs, one.skipped))
        rows.append([name, *counts, f"{one.worst:.6f}", ", ".join(map(str, one.broken)) or "none"])
    print("\n" + format_table([title, unit, "pairs", "not compared", "worst ratio", "seeds above the claim"], rows))


if __name__ == "__main__":
    sys.exit(main())
