"""``matrixdp studio``: pages and a JSON API on which curators and analysts agree on releases.

The server needs the extra ``studio``; `client`, the Python side of the API, needs nothing but the standard library.
"""
