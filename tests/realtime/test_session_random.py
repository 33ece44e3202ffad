"""Whatever clients, engines and clocks do, the end-of-stream contract holds."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from engine.errors import GenerationFailed
from realtime import effects as do
from realtime import messages as msg
from realtime.errors import InvalidRequest
from realtime.limits import Limits, Tuning
from realtime.options import SessionOptions
from realtime.utterance import Phase
from tests.support.rig import PCM, Contract, Rig

NAMES = st.sampled_from([None, None, "a", "b"])
TEXTS = st.sampled_from(
    ["Hello ", "wor", "ld. ", "It is 7:", "30 now, ", "!", " ", "😀", "e.g. ", "one two three. "]
)


class RandomSession(RuleBasedStateMachine):
    """Commands, engine steps, sending and time, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.rig = Rig(Limits(send_buffer_ms=2000, pending_utterances=6), Tuning(lead_ms=1500, stall_s=20))
        self.contract = Contract()
        self.rig.say(msg.StartSession(SessionOptions(format=PCM, words=True, ttfp_budget_ms=300.0)))

    def deliver(self, count: int) -> None:
        for event in self.rig.take(limit=count):
            self.contract.check(event)

    @property
    def speaking(self) -> list[int]:
        session = self.rig.session
        return [u.index for u in session._roster if u.phase is Phase.SPEAKING]

    @rule(text=TEXTS, name=NAMES)
    def text(self, text: str, name: str | None) -> None:
        self.rig.say(msg.AppendText(text, name))

    @rule(name=NAMES)
    def flush(self, name: str | None) -> None:
        self.rig.say(msg.Flush(name))

    @rule(name=NAMES)
    def end(self, name: str | None) -> None:
        self.rig.say(msg.End(name))

    @rule(name=NAMES, played=st.none() | st.floats(0, 5000))
    def cancel(self, name: str | None, played: float | None) -> None:
        before = {u.name: u.text for u in self.rig.session._roster if name in (None, u.name)}
        count = len(self.rig.effects)
        self.rig.say(msg.Cancel(name, played))
        over = [e for e in self.rig.effects[count:] if isinstance(e, do.ReportUtterance)]
        assert {e.report.utterance for e in over} >= set(before)

    @rule()
    def ready(self) -> None:
        self.rig.ready()

    @precondition(lambda self: self.speaking)
    @rule(words=st.integers(1, 4))
    def engine_speaks(self, words: int) -> None:
        for index in self.speaking:
            for _ in range(words):
                stream = self.rig.streams[index]
                if stream.spoken < len(stream.words) and not stream.closed and stream.made <= stream.granted:
                    self.rig.word(index)

    @precondition(lambda self: self.speaking)
    @rule()
    def engine_finishes(self) -> None:
        for index in self.speaking:
            if self.rig.streams[index].finished and self.rig.streams[index].words:
                self.rig.finish(index)

    @rule(count=st.integers(1, 40))
    def send(self, count: int) -> None:
        self.deliver(count)

    @rule(seconds=st.floats(0.001, 3))
    def time(self, seconds: float) -> None:
        self.rig.tick(seconds)

    @precondition(lambda self: self.rig.session.busy)
    @rule(which=st.sampled_from(["engine", "client", "close", "lost", "drain"]), often=st.integers(0, 9))
    def trouble(self, which: str, often: int) -> None:
        if often:
            return
        rig = self.rig
        if which == "engine" and self.speaking:
            rig.session.failed(GenerationFailed("broke"), rig.now, self.speaking[0])
        elif which == "client":
            rig.say(msg.Reject(InvalidRequest("wrong")))
        elif which == "close":
            rig.say(msg.Close())
        elif which == "lost":
            rig.session.connection_lost(rig.now)
        elif which == "drain":
            rig.session.drain(rig.now)
        rig.perform()

    @invariant()
    def one_stream_at_a_time(self) -> None:
        assert len(self.speaking) <= 1
        open_streams = [index for index, stream in self.rig.streams.items() if not stream.closed]
        assert set(self.speaking) <= set(open_streams)

    @invariant()
    def deadlines_do_not_spin(self) -> None:
        self.rig.tick(0.0)

    def teardown(self) -> None:
        """Let everything end: then each utterance that started has one terminal, and nothing is left."""
        rig = self.rig
        rig.ready()
        rig.say(msg.Close())
        for _ in range(300):
            self.engine_speaks_all()
            self.deliver(1000)
            rig.tick(0.25)
        assert rig.closed
        assert rig.session.busy == 0
        lost = any(isinstance(e, do.EndSession) for e in rig.effects) and not self.contract.over
        if not lost:
            assert set(self.contract.terminals) >= set(self.contract.started)
        reported = [e.report.index for e in rig.effects if isinstance(e, do.ReportUtterance)]
        assert len(reported) == len(set(reported)), "each utterance is reported once"
        for index, stream in rig.streams.items():
            assert stream.closed or index in reported

    def engine_speaks_all(self) -> None:
        for index in self.speaking:
            stream = self.rig.streams[index]
            while stream.spoken < len(stream.words) and stream.made <= stream.granted and not stream.closed:
                self.rig.word(index)
            if stream.finished and stream.spoken == len(stream.words) and not stream.closed:
                self.rig.finish(index)


RandomSession.TestCase.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
TestRandomSession = RandomSession.TestCase
