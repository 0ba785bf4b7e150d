"""The data of the paper's experiments, read again where the folder of the data sets has changed."""

from matrixdp.paper import components, regression, trials


def forget_data():
    """Clear the caches of data, since ``MATRIXDP_DATA`` has changed."""
    for cached in (regression.records, components.load_movement, components.load_ctg, trials.origins):
        cached.cache_clear()
