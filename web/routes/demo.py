"""The demo and the interface's page: static files, and what a browser may do with them."""

import os
from pathlib import Path

from fastapi import APIRouter
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

router = APIRouter(include_in_schema=False)

_FOLDER = Path(__file__).parent.parent / "static"
_HEADERS = {
    "cache-control": "no-cache",
    "content-security-policy": "default-src 'self'; base-uri 'none'; frame-ancestors 'none'",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


class DemoFiles(StaticFiles):
    """The pages' files; no inline script, nothing from elsewhere."""

    def __init__(self) -> None:
        super().__init__(directory=_FOLDER)

    def file_response(
        self,
        full_path: str | os.PathLike[str],
        stat_result: os.stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        """See `StaticFiles`."""
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers.update(_HEADERS)
        return response


@router.get("/")
async def page() -> Response:
    """The demo."""
    return FileResponse(_FOLDER / "index.html", headers=_HEADERS)


@router.get("/docs")
async def docs() -> Response:
    """The interface: FastAPI's own page would load its scripts from another host."""
    return FileResponse(_FOLDER / "docs.html", headers=_HEADERS)
