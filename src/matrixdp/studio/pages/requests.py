"""Requests: asking, approving, refusing, progress."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter()
