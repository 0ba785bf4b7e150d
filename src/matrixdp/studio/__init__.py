"""``matrixdp studio``: pages and a JSON API on which curators and analysts agree on releases."""
