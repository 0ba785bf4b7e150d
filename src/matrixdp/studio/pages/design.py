"""The design page, with a live forecast that reads no data."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter()
