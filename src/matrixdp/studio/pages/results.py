"""Results: the report, an explorer of the released matrix, and downloads."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter()
