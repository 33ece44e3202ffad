import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from engine.errors import EngineDead, RequestRejected
from engine.lm import LmRequest, LmSampling, check_request
from engine.vllm_lm import VllmLM, VllmSettings

GOOD = LmRequest(
    request_id="r",
    prompt=[1, 2, 3],
    max_tokens=5,
    allowed=(7, 8),
    end=2,
    sampling=LmSampling(temperature=1.0, top_p=1.0, top_k=50, repetition_penalty=1.0, seed=1),
)


def test_a_good_request_passes():
    check_request(GOOD, vocab_size=10, max_context=8)


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("prompt", {"prompt": []}),
        ("prompt", {"prompt": [10]}),
        ("prompt", {"prompt": [-1]}),
        ("prompt", {"prompt": [1.0]}),
        ("prompt", {"prompt": ["1"]}),
        ("prompt", {"prompt": [True]}),
        ("prompt", {"prompt": [np.int64(1)]}),
        ("prompt", {"prompt": [1] * 4}),
        ("allowed", {"allowed": ()}),
        ("allowed", {"allowed": (10,)}),
        ("max_tokens", {"max_tokens": 0}),
    ],
)
def test_a_bad_one_is_refused_by_name(field, change):
    with pytest.raises(RequestRejected) as caught:
        check_request(replace(GOOD, **change), vocab_size=10, max_context=8)
    assert caught.value.field == field


async def test_a_start_without_a_model_is_told_at_once(tmp_path):
    lm = VllmLM(VllmSettings(folder=tmp_path), vocab_size=10)
    with pytest.raises(EngineDead, match=r"no config\.json"):
        await lm.start()
    assert lm.health().state == "stopped"
    with pytest.raises(EngineDead):
        await anext(lm.generate(GOOD))
    await lm.stop()


def test_what_others_import_needs_neither_torch_nor_vllm():
    modules = "engine.contract, engine.errors, engine.fake, engine.lm, engine.vllm_lm, engine.models.registry"
    code = f"import sys, {modules}; assert not {{'torch', 'vllm'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
