from engine.models.ember import layout


def test_prefix_is_padded_to_whole_blocks() -> None:
    for count in range(70):
        prefix = layout.voice_prefix("hello there.", [layout.CODE_BASE] * count)
        assert len(prefix) % layout.PREFIX_BLOCK == 0
        pads = prefix.count(layout.PAD)
        assert pads < layout.PREFIX_BLOCK
        assert prefix[: pads + 2] == [layout.BOS, *[layout.PAD] * pads, layout.REF_TEXT]


def test_words_need_a_letter() -> None:
    assert layout.spoken_words("re-do it - p m , now!") == ["re-do", "it", "p", "m", "now!"]


def test_first_cut_is_the_shortest_word_end() -> None:
    assert layout.first_cut("please check your order again") == 18
    assert layout.first_cut("short") == 0
    assert layout.first_cut("antidisestablishment ends") == 21


def test_text_block() -> None:
    assert layout.text_block("a ", final=False) == [layout.TEXT, 16 + 97, 16 + 32, layout.AUDIO]
    assert layout.text_block("", final=True) == [layout.TEXT, layout.END_TEXT, layout.AUDIO]
