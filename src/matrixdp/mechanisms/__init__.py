"""The only package in which private data and noise meet.

`mechanism` adds noise to one answer, `dataset_rows` to the rows of a data set in files, `device_rows` to rows on a GPU;
`interception` lets an audit answer in place of fresh noise. Nothing here charges a ledger: `matrixdp.release` does.
"""
