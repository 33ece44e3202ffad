"""Codec codes to samples, for many streams at once, in a worker thread.

Each stream has a row in one large decoder state. Jobs that are ready together and have the same number of
codes are decoded as one batch. Bookkeeping (rows, jobs) belongs to the event loop; tensors to the worker.
"""

import asyncio
import dataclasses
import logging
import threading
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from engine.contract import Samples
from engine.errors import EngineDead, Overloaded, VocoderFailed
from engine.models.base import State, StreamingCodec

_log = logging.getLogger(__name__)

STEP_CODES = (12, 8, 4, 2, 1)
"""Codes per job, largest first: few distinct lengths, so that streams meet in a batch."""


def step_size(ready: int) -> int:
    """The largest step that ``ready`` codes fill (0 when there are none)."""
    return next((size for size in STEP_CODES if size <= ready), 0)


@dataclass(slots=True)
class _Row:
    """A stream's place in the state: ``fresh`` until its first job, ``busy`` while the worker has one."""

    index: int
    speaker: npt.NDArray[np.float32]
    fresh: bool = True
    busy: bool = False
    released: bool = False


@dataclass(slots=True)
class _Job:
    row: _Row
    codes: Sequence[int]
    future: "asyncio.Future[Samples]"
    fresh: bool


class Vocoder(Generic[State]):
    """Decodes the streams of one event loop.

    Args:
        codec: the model's streaming decoder.
        rows: most streams at once.
        speaker_size: length of a speaker vector.
        device: torch device of the codec.
        threads: torch threads of a step.
    """

    def __init__(
        self,
        codec: StreamingCodec[State],
        *,
        rows: int,
        speaker_size: int,
        device: str = "cpu",
        threads: int = 1,
    ) -> None:
        self._codec, self._device, self._threads = codec, torch.device(device), threads
        self._capacity, self._speaker_size = rows, speaker_size
        self._rows: dict[str, _Row] = {}
        self._free = list(range(rows - 1, -1, -1))
        self._jobs: deque[_Job] = deque()  # bounded: a stream has at most one job
        self._wake = threading.Condition()
        self._running = False
        """Written with ``_wake`` held."""
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.steps = 0
        self.stepped_rows = 0

    async def start(self) -> None:
        """Start the worker and decode once, so that the first stream does not pay for it."""
        self._loop = asyncio.get_running_loop()
        self._running = True
        self._thread = threading.Thread(target=self._work, name="vocoder", daemon=True)
        self._thread.start()
        self.open("", np.zeros(self._speaker_size, np.float32))
        for size in STEP_CODES:
            await self.decode("", [0] * size)
        self.release("")

    async def stop(self) -> None:
        """End the worker; jobs it has not begun fail. Idempotent."""
        with self._wake:
            self._running = False
            self._wake.notify()
        if self._thread is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._thread.join)

    @property
    def running(self) -> bool:
        """False before `start`, after `stop`, and when the worker has died."""
        return self._running

    @property
    def open_streams(self) -> int:
        """Streams that hold a row."""
        return self._capacity - len(self._free)

    def open(self, request_id: str, speaker: npt.NDArray[np.float32]) -> None:
        """Give a stream a row, with silence before its first code. Raises `Overloaded`, `EngineDead`."""
        if not self._running:
            raise EngineDead("the vocoder is not running")
        if request_id in self._rows:
            raise ValueError(f"stream {request_id!r} is open already")
        if not self._free:
            raise Overloaded(f"all {self._capacity} vocoder rows are in use", retry_after_s=1.0)
        self._rows[request_id] = _Row(self._free.pop(), speaker)

    def release(self, request_id: str) -> None:
        """Free a stream's row, at once or when the worker is done with it. Unknown ids are ignored."""
        row = self._rows.pop(request_id, None)
        if row is None:
            return
        row.released = True
        if not row.busy:
            self._free.append(row.index)

    def decode(self, request_id: str, codes: Sequence[int]) -> "asyncio.Future[Samples]":
        """The samples of a stream's next codes: float32 ``[len(codes) * frame_samples]`` in [-1, 1].

        A stream has one job at a time. The future raises `VocoderFailed` or `EngineDead`; cancelling it
        loses the codes, so that only `release` may follow.
        """
        row = self._rows[request_id]
        if row.busy:
            raise ValueError(f"stream {request_id!r} has a job already")
        future: asyncio.Future[Samples] = asyncio.get_running_loop().create_future()
        job = _Job(row, codes, future, row.fresh)
        with self._wake:
            if not self._running:
                raise EngineDead("the vocoder is not running")
            self._jobs.append(job)
            self._wake.notify()
        row.busy, row.fresh = True, False
        return future

    def _settle(self, done: Sequence[tuple[_Job, Samples | VocoderFailed | EngineDead]]) -> None:
        """In the event loop: hand results over and free the rows that were released meanwhile."""
        for job, result in done:
            job.row.busy = False
            if job.row.released:
                self._free.append(job.row.index)
            if job.future.done():
                continue
            if isinstance(result, np.ndarray):
                job.future.set_result(result)
            else:
                job.future.set_exception(result)
                job.future.exception()  # nobody may be waiting any more

    def _work(self) -> None:
        """The worker thread: until stopped, decode what is ready."""
        torch.set_num_threads(self._threads)
        jobs: list[_Job] = []
        try:
            with torch.inference_mode():
                worker = _Worker(self)
                while jobs := self._take():
                    self._tell(worker.run(jobs))
                    jobs = []
        finally:
            # Also when something unforeseen ends the thread: nobody may wait for ever.
            with self._wake:
                self._running = False
                jobs, self._jobs = [*jobs, *self._jobs], deque()
            self._tell([(job, EngineDead("the vocoder has stopped")) for job in jobs])

    def _take(self) -> list[_Job]:
        """Wait for jobs and take those of one batch: of the oldest job's length. Empty when stopped."""
        with self._wake:
            while self._running and not self._jobs:
                self._wake.wait()
            if not self._running:
                return []
            by_size: defaultdict[int, list[_Job]] = defaultdict(list)
            for job in self._jobs:
                by_size[len(job.codes)].append(job)
            # First packets first: they are the shortest, and somebody waits for them.
            fresh = next((job for job in self._jobs if job.fresh), self._jobs[0])
            batch = by_size[len(fresh.codes)]
            taken = set(map(id, batch))
            self._jobs = deque(job for job in self._jobs if id(job) not in taken)
            return batch

    def _tell(self, done: Sequence[tuple[_Job, Samples | VocoderFailed | EngineDead]]) -> None:
        loop = cast(asyncio.AbstractEventLoop, self._loop)
        if done and not loop.is_closed():
            loop.call_soon_threadsafe(self._settle, done)


class _Worker(Generic[State]):
    """What the worker thread owns: the state of all rows."""

    def __init__(self, vocoder: Vocoder[State]) -> None:
        self._vocoder = vocoder
        self._codec, self._device = vocoder._codec, vocoder._device
        self._state: Any = self._codec.init_state(vocoder._capacity)
        self._names = [field.name for field in dataclasses.fields(cast(Any, self._state))]
        self._tensors = _tensors(self._state)
        silent = torch.zeros(1, vocoder._speaker_size, device=self._device)
        self._conditions = self._codec.condition(silent).repeat(vocoder._capacity, 1)

    def run(self, jobs: list[_Job]) -> list[tuple[_Job, Samples | VocoderFailed | EngineDead]]:
        """Decode jobs of one length. A job whose samples are bad or that raises fails alone."""
        try:
            wave = self._step(jobs)
        except (RuntimeError, MemoryError, ValueError, IndexError) as error:  # torch raises these
            if len(jobs) == 1:
                _log.error("vocoder step failed: %s", type(error).__name__)
                failure = VocoderFailed(f"decoding failed: {error}")
                failure.__cause__ = error
                return [(jobs[0], failure)]
            # The rows' state is untouched; one by one tells which of them is at fault.
            return [result for job in jobs for result in self.run([job])]
        fine = cast(list[bool], np.isfinite(wave).all(axis=1).tolist())
        return [
            (job, row if good else VocoderFailed("decoding gave samples that are not finite"))
            for job, row, good in zip(jobs, wave, fine, strict=True)
        ]

    def _step(self, jobs: list[_Job]) -> npt.NDArray[np.float32]:
        for job in jobs:
            if job.fresh:
                self._reset(job.row)
        rows = torch.tensor([job.row.index for job in jobs], device=self._device)
        codes = torch.tensor([list(job.codes) for job in jobs], device=self._device)
        picked = (tensor[rows] for tensor in self._tensors)
        state = dataclasses.replace(self._state, **dict(zip(self._names, picked, strict=True)))
        wave = self._codec.step(codes, self._conditions[rows], state)
        for whole, part in zip(self._tensors, _tensors(state), strict=True):
            whole[rows] = part.to(whole.dtype)
        self._vocoder.steps += 1
        self._vocoder.stepped_rows += len(jobs)
        return cast(npt.NDArray[np.float32], wave.float().clamp(-1, 1).cpu().numpy())

    def _reset(self, row: _Row) -> None:
        for tensor in self._tensors:
            tensor[row.index] = 0
        speaker = torch.from_numpy(row.speaker).to(self._device)
        self._conditions[row.index] = self._codec.condition(speaker[None])[0]


def _tensors(state: Any) -> list[Tensor]:
    return [getattr(state, field.name) for field in dataclasses.fields(state)]
