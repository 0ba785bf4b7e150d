"""Data sets: budgets, allowances and what was released."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from matrixdp.studio.rendering import render
from matrixdp.studio.security import CurrentStudio

router = APIRouter()


@router.get("/")
def show_start() -> Response:
    """The first page."""
    return RedirectResponse("/datasets", 303)


@router.get("/datasets")
def list_datasets(request: Request, studio: CurrentStudio) -> Response:
    """All data sets."""
    return render(request, "datasets.html", datasets=studio.datasets.list_all())
