"""The simulated listener."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.playback import Player, Track

RATE = 1000


def test_plays_in_real_time_from_the_first_packet() -> None:
    player, track = Player(), Track(RATE)
    assert track.played(5.0) == 0
    player.sent(track, 500, 10.0)
    assert [track.played(at) for at in (9.0, 10.0, 10.2, 11.0)] == [0, 0, 200, 500]
    assert player.remaining_s(10.2) == pytest.approx(0.3)
    assert track.unplayed_s(10.2) == pytest.approx(0.3)


def test_a_gap_is_heard_and_played_over() -> None:
    player, track = Player(), Track(RATE)
    player.sent(track, 100, 0.0)
    assert player.sent(track, 200, 0.3) == pytest.approx(0.2)
    assert track.gap_s == pytest.approx(0.2)
    assert track.played(0.35) == 150


def test_the_next_utterance_plays_after_the_one_before() -> None:
    player, first, second = Player(), Track(RATE), Track(RATE)
    player.sent(first, 500, 0.0)
    assert player.sent(second, 500, 0.1) == 0
    assert [second.played(at) for at in (0.4, 0.5, 0.7)] == [0, 0, 200]
    assert player.remaining_s(0.1) == pytest.approx(0.9)


def test_silence_between_utterances_is_no_gap() -> None:
    player, first, second = Player(), Track(RATE), Track(RATE)
    player.sent(first, 500, 0.0)
    assert player.sent(second, 500, 60.0) == 0


def test_a_transport_that_knows() -> None:
    player, track = Player(), Track(RATE)
    player.sent(track, 500, 0.0)
    track.reported = 40
    assert track.played(0.4) == 40
    track.reported = 4000
    assert track.played(0.4) == 500


def test_the_client_throws_audio_away() -> None:
    player, track = Player(), Track(RATE)
    player.sent(track, 500, 0.0)
    player.stopped(0.1)
    assert player.remaining_s(0.1) == 0


@given(st.lists(st.tuples(st.integers(1, 400), st.floats(0, 1)), max_size=30))
def test_never_more_than_sent_and_never_back(packets: list[tuple[int, float]]) -> None:
    player, track, now, played = Player(), Track(RATE), 0.0, 0
    for samples, wait in packets:
        now += wait
        player.sent(track, track.sent + samples, now)
        assert played <= track.played(now) <= track.sent
        played = track.played(now)
        assert abs(player.remaining_s(now) - track.unplayed_s(now)) < 2 / RATE
    assert track.played(now + 1000) == track.sent
