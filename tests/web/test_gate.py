import asyncio
from ipaddress import ip_network

from hypothesis import given
from hypothesis import strategies as st

from realtime.errors import ErrorCode
from web.gate import ConnectionGate


def gate(total: int = 100, per_address: int = 2) -> ConnectionGate:
    return ConnectionGate(total, per_address, [ip_network("10.0.0.0/8")])


def enter(gate: ConnectionGate, address: str) -> ErrorCode | None:
    return gate.enter(asyncio.BaseTransport(), address)


def test_addresses_are_counted_apart() -> None:
    made = gate()
    assert [enter(made, "192.0.2.1") for _ in range(3)] == [None, None, ErrorCode.RATE_LIMITED]
    assert enter(made, "192.0.2.2") is None
    assert enter(made, "::ffff:192.0.2.1") is ErrorCode.RATE_LIMITED
    assert made.refused == {ErrorCode.RATE_LIMITED: 2}


def test_a_site_is_one_address() -> None:
    made = gate()
    assert [enter(made, f"2001:db8::{i}") for i in range(3)] == [None, None, ErrorCode.RATE_LIMITED]
    assert enter(made, "2001:db8:0:1::1") is None


def test_proxies_and_local_sockets_are_not_counted_as_one_client() -> None:
    made = gate()
    assert [enter(made, "10.1.2.3") for _ in range(5)] == [None] * 5
    assert [enter(made, "") for _ in range(5)] == [None] * 5


def test_the_process_has_a_limit() -> None:
    made = gate(total=1)
    transport = asyncio.BaseTransport()
    assert made.enter(transport, "192.0.2.1") is None
    assert enter(made, "192.0.2.2") is ErrorCode.OVERLOADED
    made.leave(transport)
    made.leave(transport)
    assert made.open == 0
    assert enter(made, "192.0.2.2") is None


ADDRESSES = st.sampled_from(["192.0.2.1", "192.0.2.2", "10.0.0.1"])


@given(st.lists(st.tuples(st.booleans(), ADDRESSES), max_size=60))
def test_whatever_comes_and_goes_the_count_is_right(steps: list[tuple[bool, str]]) -> None:
    made = gate(total=8, per_address=3)
    inside: list[tuple[asyncio.BaseTransport, str]] = []
    for comes, address in steps:
        if comes:
            transport = asyncio.BaseTransport()
            same = sum(other == address for _, other in inside)
            expected = None
            if len(inside) >= 8:
                expected = ErrorCode.OVERLOADED
            elif same >= 3 and address != "10.0.0.1":
                expected = ErrorCode.RATE_LIMITED
            assert made.enter(transport, address) is expected
            if expected is None:
                inside.append((transport, address))
        elif inside:
            made.leave(inside.pop(0)[0])
        assert made.open == len(inside)
