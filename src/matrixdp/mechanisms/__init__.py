"""The only package in which private data and noise meet.

`mechanism` adds noise to one answer, or lets an audit answer in its place, `dataset_rows` to the rows of a data set in
files. Nothing here charges a ledger: `matrixdp.release` does.
"""
