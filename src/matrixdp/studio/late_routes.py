"""Routes whose modules are imported after the server has started, so that its first pages are there at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from importlib import import_module

from fastapi import APIRouter, FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

_PAUSE = 0.5  # seconds


class LateRoutes:
    """Adds the routers of some modules to an app once they are imported; a request for their addresses waits for it.

    Parameters
    ----------
    modules : sequence of str
        Modules with a `router` each.
    """

    def __init__(self, modules: Sequence[str]) -> None:
        self._modules = modules
        self._lock = asyncio.Lock()
        self._loaded = False

    async def add_soon(self, app: FastAPI) -> None:
        """Add the routers after a pause, in which the first page is answered undisturbed."""
        await asyncio.sleep(_PAUSE)
        await self.add_to(app)

    async def add_to(self, app: FastAPI) -> None:
        """Import the modules in another thread, and add their routers."""
        async with self._lock:
            if not self._loaded:
                for router in await asyncio.to_thread(import_routers, self._modules):
                    app.include_router(router)
                self._loaded = True

    def make_middleware(self, is_early: Callable[[str], bool]) -> Callable[[ASGIApp], ASGIApp]:
        """Middleware that lets requests for paths that are not early wait until all routes are there."""

        def wrap(inner: ASGIApp) -> ASGIApp:
            async def answer(scope: Scope, receive: Receive, send: Send) -> None:
                if not self._loaded and scope["type"] == "http" and not is_early(scope["path"]):
                    await self.add_to(scope["app"])
                await inner(scope, receive, send)

            return answer

        return wrap


def import_routers(modules: Sequence[str]) -> list[APIRouter]:
    """The routers of some modules."""
    return [import_module(name).router for name in modules]
