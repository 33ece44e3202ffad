"""Is the process there, and can it speak now?"""

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from web.lifespan import Runtime, runtime_of
from web.schemas import Health

router = APIRouter(tags=["health"])


@router.get("/healthz")
async def healthz() -> Health:
    """The process is there."""
    return Health(status="ok")


@router.get("/readyz", responses={503: {"model": Health, "description": "It cannot speak now."}})
async def readyz(runtime: Annotated[Runtime, Depends(runtime_of)], response: Response) -> Health:
    """It can speak now; 503 if not, with the reason."""
    if runtime.status != "ready":
        response.status_code = 503
    return Health(status=runtime.status)
