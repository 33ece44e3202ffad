"""Ember's decoder as the vocoder uses it: constants of a stream computed once, in the dtype that is fast."""

import copy

import torch
from torch import Tensor, nn

from engine.models.ember.codec import DecoderState, EmberCodec


class EmberDecoder:
    """A `StreamingCodec` over the decoder of `codec`, which is left as it is.

    Args:
        codec: loaded, in float32.
        bfloat16: keep the linear layers' weights in bfloat16 and compute in it: about 37 dB from float32, and
            two to three times faster where the processor has instructions for it.
    """

    def __init__(self, codec: EmberCodec, *, bfloat16: bool) -> None:
        self._quantiser = codec.quantiser
        self._condition = codec.decoder.condition
        self._decoder = copy.copy(codec.decoder)
        self._decoder._modules = dict(codec.decoder._modules)
        if bfloat16:
            self._decoder = copy.deepcopy(self._decoder)
            for layer in self._decoder.modules():
                if isinstance(layer, nn.Linear):
                    layer.to(torch.bfloat16)
        # `step` is given the layer's output, computed once a stream: a sixth of all weights.
        self._decoder.condition = nn.Identity()  # type: ignore[assignment]
        self._device = next(codec.parameters()).device.type
        self._bfloat16 = bfloat16

    def condition(self, speakers: Tensor) -> Tensor:
        """Speaker vectors ``float32 [B, 192]`` to what `step` takes."""
        with torch.no_grad():
            condition: Tensor = self._condition(speakers)
        return condition.to(torch.bfloat16) if self._bfloat16 else condition

    def init_state(self, batch: int) -> DecoderState:
        """Streaming state of ``batch`` streams that have said nothing yet."""
        state = self._decoder.init_state(batch)
        return DecoderState(state.low.float(), state.high.float(), state.overlap.float())

    def step(self, codes: Tensor, condition: Tensor, state: DecoderState) -> Tensor:
        """Next codes ``int64 [B, n]`` to samples ``float32 [B, n * 480]``; ``state`` is updated."""
        # Each weight is used once a step: a cache of casts would only cost.
        with torch.autocast(self._device, torch.bfloat16, enabled=self._bfloat16, cache_enabled=False):
            return self._decoder.step(self._quantiser.vectors(codes), condition, state)


def bfloat16_is_fast(device: str) -> bool:
    """Whether the processor multiplies bfloat16 natively."""
    if device == "cpu":
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return bool(torch.cuda.is_bf16_supported())
