"""Answers: statistics computed from a released matrix by post-processing, with error bars."""

from matrixdp.answers.draws import Draws
from matrixdp.answers.estimate import Combined, Estimate, combine
from matrixdp.answers.histograms import Histogram
from matrixdp.answers.psd import nearest_psd
from matrixdp.answers.table_forecast import TableForecast
from matrixdp.domain.schema import TableDescription

__all__ = [
    "Combined",
    "Draws",
    "Estimate",
    "Histogram",
    "TableDescription",
    "TableForecast",
    "combine",
    "nearest_psd",
]
