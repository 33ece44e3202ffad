import pytest

from scripts.bench.player import Player


def test_early_packets_build_a_lead_and_never_stall():
    player = Player()
    for k in range(50):
        player.arrived(k * 0.01, 0.02)
    assert player.stalls_s == []
    assert player.lead_s == pytest.approx(49 * 0.02 - 49 * 0.01)


def test_a_late_packet_stalls_by_what_was_missing_and_playing_goes_on_from_there():
    player = Player()
    player.arrived(0.0, 0.02)
    player.arrived(0.17, 0.02)
    player.arrived(0.18, 0.02)
    assert player.stalls_s == [pytest.approx(0.15)]
    assert player.audible == 1


def test_a_short_stall_is_counted_but_not_audible():
    player = Player()
    player.arrived(0.0, 0.02)
    player.arrived(0.05, 0.02)
    assert player.stalls_s == [pytest.approx(0.03)]
    assert player.audible == 0
