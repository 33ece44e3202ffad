"""`/v1/rtc`: WebRTC signalling in the manner of WHEP: an offer comes in, the answer goes back."""

import json
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import JSONResponse, Response

from realtime.errors import InvalidRequest, fault_of
from realtime.transports.webrtc import Lease, free
from web.access import Account
from web.faults import Responses, answer, documented
from web.lifespan import Runtime, caller_of, runtime_of

router = APIRouter(prefix="/v1", tags=["rtc"])

_SDP = "application/sdp"
_JSON = "application/json"
_FRAGMENT = "application/trickle-ice-sdpfrag"
_TEXT = {"schema": {"type": "string"}}
_OFFER: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            _SDP: _TEXT,
            _JSON: {
                "schema": {
                    "type": "object",
                    "required": ["type", "sdp"],
                    "properties": {"type": {"const": "offer"}, "sdp": {"type": "string"}},
                    "additionalProperties": False,
                }
            },
        },
    }
}
_ANSWERED: Responses = {
    201: {
        "description": "The answer. `Location` is the session: DELETE ends it.",
        "content": {_SDP: _TEXT, _JSON: {"schema": {"type": "object"}}},
    }
}


@router.post(
    "/rtc",
    status_code=201,
    response_class=Response,
    openapi_extra=_OFFER,
    responses={**_ANSWERED, **documented(400, 413, 415, 422, 503)},
)
async def offer(request: Request, runtime: Annotated[Runtime, Depends(runtime_of)]) -> Response:
    """Open a session: the data channel `voxwire` speaks the native protocol, the audio track its voice."""
    kind = _content_type(request)
    body = await _text(request)
    if kind not in (_SDP, _JSON):
        return _unsupported(f"{_SDP}, {_JSON}")
    account = caller_of(request)
    lease: Lease = partial(runtime.access.session, account) if isinstance(account, Account) else free
    sdp = _offered(body) if kind == _JSON else body
    opened = await runtime.peers.open(sdp, account, lease)
    where = {"location": f"/v1/rtc/{opened.session}"}
    if kind == _JSON:
        told = {"type": "answer", "sdp": opened.sdp, "session": opened.session, **where}
        return JSONResponse(told, 201, where)
    return Response(opened.sdp, 201, where, _SDP)


@router.patch(
    "/rtc/{session}",
    status_code=204,
    response_class=Response,
    openapi_extra={"requestBody": {"required": True, "content": {_FRAGMENT: _TEXT}}},
    responses=documented(404, 415, 422),
)
async def trickle(
    session: str, request: Request, runtime: Annotated[Runtime, Depends(runtime_of)]
) -> Response:
    """Take more of the client's candidates. An ICE restart or a new offer is refused: open a new session."""
    peer = runtime.peers.get(session)
    kind = _content_type(request)
    if kind == _SDP:
        raise InvalidRequest("a session is not negotiated again: open a new one with a new offer", "sdp")
    if kind != _FRAGMENT:
        return _unsupported(_FRAGMENT)
    await peer.add_candidates(await _text(request))
    return Response(status_code=204)


@router.delete("/rtc/{session}", status_code=204, response_class=Response, responses=documented(404, 422))
async def leave(session: str, runtime: Annotated[Runtime, Depends(runtime_of)]) -> Response:
    """End the session at once; what is being spoken is cut off."""
    runtime.peers.get(session).drop()
    return Response(status_code=204)


def _content_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _text(request: Request) -> str:
    try:
        return (await request.body()).decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest("the body is not UTF-8") from error


def _offered(body: str) -> str:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest("the body is not JSON") from error
    if not isinstance(value, dict):
        raise InvalidRequest("the body must be a JSON object")
    if unknown := sorted(set(value) - {"type", "sdp"}):
        raise InvalidRequest("no such field", str(unknown[0])[:64])
    if value.get("type") != "offer":
        raise InvalidRequest("must be 'offer'", "type")
    sdp = value.get("sdp")
    if not isinstance(sdp, str):
        raise InvalidRequest("must be a string", "sdp")
    return sdp


def _unsupported(accepted: str) -> Response:
    fault = fault_of(InvalidRequest(f"allowed: {accepted}", "content-type"))
    response = answer(fault, 415)
    response.headers["accept-post"] = accepted
    return response
