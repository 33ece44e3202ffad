"""Figures for Prometheus."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Response
from fastapi.responses import PlainTextResponse

from web.lifespan import Runtime, runtime_of
from web.observe import CONTENT_TYPE

router = APIRouter(tags=["metrics"])


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(runtime: Annotated[Runtime, Depends(runtime_of)]) -> Response:
    """Sessions, time to first packet and its parts, tokens, engine; vLLM's own figures too."""
    return Response(await asyncio.to_thread(runtime.metrics.export), media_type=CONTENT_TYPE)
