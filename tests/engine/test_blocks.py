import random

from hypothesis import given
from hypothesis import strategies as st

from engine.blocks import BlockRules, Continue, Give, Progress, Wait, next_step, token_bound

RULES = BlockRules()
WORDS = st.lists(st.text("abcdefghij", min_size=1, max_size=20), min_size=1, max_size=60)


def test_first_block_needs_sixteen_characters_and_a_word_in_hand():
    assert next_step(RULES, Progress(["hello", "there"], ended=False)) == Wait()
    step = next_step(RULES, Progress(["hello", "there", "my"], ended=False))
    assert step == Wait() or isinstance(step, Give)
    step = next_step(RULES, Progress(["hello", "there", "my", "old"], ended=False))
    assert step == Give(4, False, 24)


def test_a_whole_segment_is_one_final_block():
    assert next_step(RULES, Progress(["yes."], ended=True)) == Give(1, True, 96)


def test_final_block_may_be_empty():
    now = Progress(["hello", "there", "my", "friend"], ended=True, given=4, begun=2, blocks=1)
    assert next_step(RULES, now) == Give(0, True, 96)


def test_a_stall_of_text_waits_at_the_edge():
    now = Progress(["hello", "there", "my", "friend"], ended=False, given=4, begun=3, blocks=1)
    assert next_step(RULES, now) == Wait()


def test_look_ahead_goes_on_without_new_text():
    words = ["something", "considerably", "longer", "than", "before"]
    now = Progress(words, ended=False, given=5, begun=1, blocks=1)
    assert next_step(RULES, now) == Continue(48)


def test_whole_segments_only_where_text_is_not_streamed():
    rules = BlockRules(streams_text=False)
    words = ["something"] * 20
    assert next_step(rules, Progress(words, ended=False)) == Wait()
    assert next_step(rules, Progress(words, ended=True)) == Give(20, True, 96)


@given(words=WORDS, seed=st.integers(0, 2**32), ended_at_once=st.booleans())
def test_simulated_segment(words, seed, ended_at_once):
    """Text comes at random moments; a model speaks at random speeds, never faster than assumed."""
    rng = random.Random(seed)
    arrived = len(words) if ended_at_once else 0
    ended = ended_at_once
    now = Progress([], ended=False)
    text_given: list[str] = []
    word_left = 0  # tokens until the next word begins
    for _ in range(2000):
        now = Progress(words[:arrived], ended, now.given, now.begun, now.blocks, now.final)
        step = next_step(RULES, now)
        if isinstance(step, Wait):
            assert not ended, "an ended segment always gets on"
            arrived = min(len(words), arrived + rng.randint(1, 4))
            ended = arrived == len(words) and rng.random() < 0.5
            continue
        given, begun, blocks, final = now.given, now.begun, now.blocks, now.final
        if isinstance(step, Give):
            assert not final
            assert given + step.words <= arrived
            assert step.words > 0 or step.final
            text_given += words[given : given + step.words]
            given, blocks, final = given + step.words, 0, step.final
        assert step.tokens % RULES.block_tokens == 0
        assert step.tokens > 0
        for _ in range(step.tokens):
            if word_left > 0:
                word_left -= 1
            elif begun < given:
                word = words[begun]
                begun += 1
                word_left = int((len(word) + 1) * rng.uniform(2.5, 6))
            elif final:
                assert text_given == words, "everything was given, in order, once"
                return
        blocks += step.tokens // RULES.block_tokens
        if not final:
            assert blocks <= RULES.max_blocks
            assert begun < given, "at a block's end a given word has not begun yet"
        now = Progress(words[:arrived], ended, given, begun, blocks, final)
    raise AssertionError("the segment never ended")


def test_bound_is_far_above_speech_and_grows_with_text():
    assert token_bound(["hello"]) > 100
    assert token_bound(["a"] * 10) > 10 * 25
    assert token_bound(["word"] * 50) < 50 * 100 + 101
