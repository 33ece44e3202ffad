"""`voxwire say`: speak a text, or standard input while it is still being written."""

import argparse
import asyncio
import codecs
import os
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import numpy as np

from realtime.client import (
    ConnectFailed,
    ProtocolViolation,
    ServerError,
    Session,
    StreamTruncated,
    Utterance,
    connect,
)
from realtime.client_http import HTTP_FORMATS, PCM_RATE, speak_http
from realtime.errors import NOTHING_TO_SPEAK
from web.sound import open_sink, sound_module

DONE, BROKEN, USAGE, REFUSED, UNREACHABLE, TRY_LATER, INTERRUPTED = 0, 1, 2, 3, 4, 75, 130
"""Exit codes: spoken to the end, or there was nothing to speak; the stream broke; wrong arguments or no place
to write; the server refused the request; no server; the server is busy, try again; interrupted."""

_ENCODINGS = ("opus", "pcm_s16le", "pcm_f32le", "mulaw", "alaw")
_COMPRESSED = ("mp3", "opus", "aac", "flac")
_DEFAULT_OUT = Path("say.wav")
_READ_BYTES = 4096
_PIECES = 64
_KEEPALIVE_S = 15.0
_PARTIAL = ".part"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ``voxwire say``."""
    formats = f"{', '.join(_ENCODINGS)}; with --http: {', '.join(HTTP_FORMATS)}"
    parser.add_argument(
        "text", nargs="*", help="what to say; - (or nothing) reads standard input as it comes"
    )
    parser.add_argument("--voice", help="a name of /v1/voices")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write a WAV file instead of playing")
    parser.add_argument("--url", default="http://127.0.0.1:8080", help="the server (default: %(default)s)")
    parser.add_argument("--format", metavar="NAME", help=f"on the wire: {formats}")
    parser.add_argument("--speed", type=float, help="1 is the voice's own")
    parser.add_argument("--seed", type=int, help="same seed, same audio")
    parser.add_argument("--words", action="store_true", help="print each word with its time")
    parser.add_argument("--http", action="store_true", help="one HTTP request instead of the WebSocket")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    parser.add_argument(
        "--timeout", type=float, default=30.0, help="longest silence of the server, in seconds"
    )


def run(options: argparse.Namespace) -> int:
    """Say it. Returns one of the exit codes above."""
    if complaint := _complaint(options):
        return _fail(complaint, USAGE)
    try:
        asyncio.run(_say_http(options) if options.http else _say(options))
    except KeyboardInterrupt:
        return INTERRUPTED
    except ConnectFailed as error:
        return _fail(f"{error}\nIs the server running? ./scripts/serve starts it.", UNREACHABLE)
    except ServerError as error:
        if error.message.endswith(NOTHING_TO_SPEAK):
            _nothing_to_speak()
            return DONE
        return _fail(str(error), TRY_LATER if error.retryable else REFUSED)
    except (StreamTruncated, ProtocolViolation) as error:
        return _fail(f"the speech is incomplete: {error}", BROKEN)
    except OSError as error:
        return _fail(_unwritable(error), USAGE)
    return DONE


def websocket_url(url: str) -> str:
    """The native endpoint of the server at ``url``; a URL that is one already stays as it is."""
    parts = urlsplit(url)
    if parts.scheme in ("ws", "wss"):
        return url
    scheme = "wss" if parts.scheme == "https" else "ws"
    return urlunsplit((scheme, parts.netloc, parts.path.rstrip("/") + "/v1/stream", "", ""))


def _complaint(options: argparse.Namespace) -> str | None:
    known = HTTP_FORMATS if options.http else _ENCODINGS
    if options.format is not None and options.format not in known:
        return f"--format {options.format}: allowed are {', '.join(known)}"
    if options.http and options.words:
        return "--words: HTTP carries no word times"
    if options.http and options.format in _COMPRESSED and options.out is None:
        return f"--format {options.format} is written as it comes: say where with --out"
    if options.out is not None and not options.out.parent.is_dir():
        return f"--out {options.out}: there is no folder {options.out.parent}"
    if options.out is not None and options.out.is_dir():
        return f"--out {options.out}: that is a folder"
    return None


def _unwritable(error: OSError) -> str:
    if error.filename is None or error.strerror is None:
        return str(error)
    return f"cannot write {str(error.filename).removesuffix(_PARTIAL)}: {error.strerror}"


async def _say(options: argparse.Namespace) -> None:
    out, device = _where(options)
    async with connect(
        websocket_url(options.url),
        voice=options.voice,
        format=options.format,
        words=options.words,
        speed=options.speed,
        sampling=None if options.seed is None else {"seed": options.seed},
        timeout_s=options.timeout,
    ) as session:
        utterance = session.utterance()
        writing = asyncio.create_task(_write(options.text, utterance), name="text")
        staying = asyncio.create_task(_stay(session), name="keep-alive")
        samples = printed = 0
        try:
            with open_sink(out, device, session.pcm_rate) as sink:
                async for pcm in utterance:
                    await sink.write(pcm)
                    samples += len(pcm)
                    if options.words:
                        printed = _print_words(utterance, printed)
                await writing
                if samples:
                    await sink.finish()
                else:
                    sink.discard()
        finally:
            # Where these failed, listening has failed too and says why.
            for task in (writing, staying):
                task.cancel()
            await asyncio.wait([writing, staying])
        for warning in session.warnings:
            _note(f"{warning.message}")
        if not samples:
            _nothing_to_speak()
            return
        _summary(options, out, f"{samples / session.pcm_rate:.2f} s", _ttfp(utterance))


async def _say_http(options: argparse.Namespace) -> None:
    text = "".join([piece async for piece in _pieces(options.text)])
    if not text.strip():  # which the server would refuse
        _nothing_to_speak()
        return
    suffix = options.out.suffix.removeprefix(".").lower() if options.out else ""
    name = options.format or (suffix if suffix in _COMPRESSED else "pcm")
    out, device = _where(options)
    began, first, size = asyncio.get_running_loop().time(), None, 0
    async with speak_http(
        options.url,
        text,
        voice=options.voice,
        format=name if name in _COMPRESSED else "pcm",
        speed=options.speed,
        seed=options.seed,
        timeout_s=options.timeout,
    ) as pieces:
        if name in _COMPRESSED:
            assert out is not None, "checked with the arguments"
            size = await _save(pieces, out)
            if not size:
                _nothing_to_speak()
                return
            _summary(options, out, f"{size} bytes of {name}", "")
            return
        with open_sink(out, device, PCM_RATE) as sink:
            odd = b""
            async for piece in pieces:
                first = first or (asyncio.get_running_loop().time() - began) * 1000
                size += len(piece)
                data = odd + piece
                odd = data[len(data) & ~1 :]
                whole = np.frombuffer(data[: len(data) & ~1], "<i2")
                await sink.write((whole / np.float32(32768)).astype(np.float32))
            if size:
                await sink.finish()
            else:
                sink.discard()
    if not size:
        _nothing_to_speak()
        return
    _summary(options, out, f"{size / 2 / PCM_RATE:.2f} s", f"first audio after {first or 0:.0f} ms")


async def _save(pieces: AsyncIterator[bytes], out: Path) -> int:
    """Write the body to ``out``, which gets its name when it is complete, unless there is none.

    Returns the bytes written.
    """
    partial, size = out.with_name(out.name + _PARTIAL), 0
    with partial.open("wb") as file:
        async for piece in pieces:
            size += file.write(piece)
    if size:
        partial.replace(out)
    else:
        partial.unlink()
    return size


async def _write(words: list[str], utterance: Utterance) -> None:
    async for piece in _pieces(words):
        await utterance.send(piece)
    await utterance.end()


async def _stay(session: Session) -> None:
    """A stall of the text is not its end."""
    while True:
        await asyncio.sleep(_KEEPALIVE_S)
        await session.keepalive()


async def _pieces(words: list[str]) -> AsyncIterator[str]:
    """The text: as given, or from standard input as it comes."""
    if words and words != ["-"]:
        yield " ".join(words)
        return
    # A thread of its own that nobody waits for: a read cannot be interrupted when the server fails.
    pieces: asyncio.Queue[str | None] = asyncio.Queue(_PIECES)
    loop = asyncio.get_running_loop()
    threading.Thread(target=_read, args=(sys.stdin.fileno(), pieces, loop), daemon=True).start()
    while (piece := await pieces.get()) is not None:
        yield piece


def _read(source: int, pieces: "asyncio.Queue[str | None]", loop: asyncio.AbstractEventLoop) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    data = b"-"
    while data:
        data = os.read(source, _READ_BYTES)
        text = decoder.decode(data, final=not data)
        if text:
            asyncio.run_coroutine_threadsafe(pieces.put(text), loop).result()
    asyncio.run_coroutine_threadsafe(pieces.put(None), loop).result()


def _where(options: argparse.Namespace) -> tuple[Path | None, object | None]:
    """A file to write to, or else the module to play with."""
    if options.out is not None:
        return options.out, None
    device = sound_module()
    if device is None:
        _note(f"no sound device here, writing {_DEFAULT_OUT}")
        return _DEFAULT_OUT, None
    return None, device


def _ttfp(utterance: Utterance) -> str:
    done = utterance.done
    if done is None or done.ttfp_ms is None or utterance.ttfp_ms is None:
        return "nothing to hear"
    parts = ", ".join(f"{name} {ms:.1f}" for name, ms in (done.ttfp_parts or {}).items())
    return (
        f"first packet after {utterance.ttfp_ms:.0f} ms here, {done.ttfp_ms:.1f} ms in the server ({parts})"
    )


def _print_words(utterance: Utterance, printed: int) -> int:
    for word in utterance.words[printed:]:
        sys.stdout.write(f"{word.start_ms / 1000:7.2f} {word.end_ms / 1000:7.2f}  {word.text}\n")
    sys.stdout.flush()
    return len(utterance.words)


def _summary(options: argparse.Namespace, out: Path | None, amount: str, latency: str) -> None:
    if not options.quiet:
        told = [f"wrote {out}" if out else "played", amount, latency]
        _note(", ".join(item for item in told if item))


def _nothing_to_speak() -> None:
    _note("nothing in the text can be spoken, so nothing was written or played")


def _fail(message: str, code: int) -> int:
    _note(message)
    return code


def _note(message: str) -> None:
    sys.stderr.write(f"voxwire say: {message}\n")
