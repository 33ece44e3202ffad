"""Teacher weights: the quantised ONNX export of Kokoro-82M -> named tensors for `kokoro.KokoroTeacher`.

The export stores most matrices as 8-bit integers with a scale and a zero point.  They are kept that way in
the file written here (an xz-compressed npz) and multiplied out when they are loaded, so the model that runs
is the float model with weights rounded to 8 bits; the activations are not quantised.

    python -m scripts.train.teacher_weights kokoro.onnx teacher.npz.xz
"""

from __future__ import annotations

import argparse
import io
import lzma
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from onnx import NodeProto

Arrays = dict[str, np.ndarray]

CONV = re.compile(r"^(.*)/Conv(Transpose)?_output_0")
MATMUL = re.compile(r"^(.*)/(MatMul_output_0_output_quantized|Gemm_output_0_MatMul_output_quantized)$")
EMBEDDINGS = (
    "bert.embeddings.word_embeddings",
    "bert.embeddings.position_embeddings",
    "bert.embeddings.token_type_embeddings",
    "text_encoder.embedding",
)
FLOAT_PARAMETERS = re.compile(r"\.(bias|gamma|beta|alpha[12]\.\d)$|LayerNorm\.weight$|layer_norm\.weight$")


def module_path(node_path: str) -> str:
    """`/encoder/F0.0/conv1` -> `predictor.F0.0.conv1`: the name of a graph node as that of a module."""
    path = node_path.replace("/decoder/decoder/", "decoder/").replace("/encoder/", "", 1)
    path = re.sub(r"(cnn\.\d|asr_res)/(cnn|asr_res)\.", r"\2.", path)
    if re.match(r"(F0|N)(\.|_proj)|shared", path):
        path = "predictor/" + path
    return path.replace("/", ".")


def parameter_name(initializer: str) -> str:
    """`encoder.predictor.F0.0.conv1.bias` -> `predictor.F0.0.conv1.bias`."""
    return re.sub(r"^(encoder|decoder)\.", "", initializer)


def gate_order(block: np.ndarray) -> np.ndarray:
    """Reorder LSTM gates along axis 0 from the export's (input, output, forget, cell) to (i, f, g, o)."""
    i, o, f, c = np.split(block, 4, axis=0)
    return np.concatenate([i, f, c, o], axis=0)


def convert(onnx_path: Path) -> Arrays:
    """Read the export; return `name|q`, `name|s`, `name|z` (quantised) and `name` (half precision) arrays."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(str(onnx_path)).graph
    values = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    out: Arrays = {}

    def quantised(name: str, q: np.ndarray, scale: np.ndarray, zero: np.ndarray | None) -> None:
        out[name + "|q"] = np.ascontiguousarray(q)
        out[name + "|s"] = np.asarray(scale, np.float32)
        if zero is not None and np.any(zero):
            out[name + "|z"] = np.asarray(zero, np.int16)

    def scale_of(weight: str) -> np.ndarray:
        return values[weight.removesuffix("_quantized") + "_scale"]

    def convolution(node: NodeProto) -> None:
        match = CONV.match(node.output[0])
        if match is None or node.input[1] not in values or "istft" in match[1]:
            return
        weight, name = values[node.input[1]], module_path(match[1]) + ".weight"
        if node.op_type == "ConvInteger":
            quantised(name, weight, scale_of(node.input[1]), values[node.input[3]])
        else:
            out[name] = weight.astype(np.float16)

    def matrix(node: NodeProto) -> None:
        match = MATMUL.match(node.output[0])
        if match is None or re.search(r"_\d+$", match[1]):  # the shared layer appears twelve times
            return
        scale = scale_of(node.input[1]).reshape(-1, 1)
        quantised(module_path(match[1]) + ".weight", values[node.input[1]].T, scale, None)

    def recurrent(node: NodeProto) -> None:
        name = module_path(node.output[0].split("/LSTM_output")[0])
        w, r, b = (values[node.input[k]] for k in (1, 2, 3))
        ws, wz, rs, rz = (values[node.input[k]] for k in (8, 9, 10, 11))
        half = b.shape[1] // 2
        for d, suffix in enumerate(("_l0", "_l0_reverse")):
            quantised(f"{name}.weight_ih{suffix}", gate_order(w[d].T), ws[d], wz.reshape(-1)[d])
            quantised(f"{name}.weight_hh{suffix}", gate_order(r[d].T), rs[d], rz.reshape(-1)[d])
            out[f"{name}.bias_ih{suffix}"] = gate_order(b[d][:half]).astype(np.float32)
            out[f"{name}.bias_hh{suffix}"] = gate_order(b[d][half:]).astype(np.float32)

    handlers: dict[str, Callable[[Any], None]] = {
        "ConvInteger": convolution,
        "Conv": convolution,
        "ConvTranspose": convolution,
        "MatMulInteger": matrix,
        "DynamicQuantizeLSTM": recurrent,
    }
    for node in graph.node:
        if node.op_type in handlers:
            handlers[node.op_type](node)
    for name in EMBEDDINGS:
        full = f"encoder.{name}.weight"
        zero = values.get(
            full + "_zero_point", values["encoder.bert.embeddings.word_embeddings.weight_zero_point"]
        )
        quantised(name + ".weight", values[full + "_quantized"], values[full + "_scale"], zero)
    for key, value in values.items():
        if value.dtype == np.float32 and FLOAT_PARAMETERS.search(key):
            out[parameter_name(key)] = value
    out["decoder.generator.m_source.weight"] = values["onnx::MatMul_6993"].T
    out["decoder.generator.m_source.bias"] = values["decoder.decoder.generator.m_source.l_linear.bias"]
    out.pop("decoder.generator.m_source.l_linear.bias", None)
    return out


def save(arrays: Arrays, path: Path) -> None:
    """Write the arrays as one xz-compressed npz."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    path.write_bytes(lzma.compress(buffer.getvalue(), preset=6))


def load(path: Path) -> dict[str, torch.Tensor]:
    """Read a file written by `save` and multiply the quantised tensors out to float32."""
    raw = path.read_bytes()
    arrays = np.load(io.BytesIO(lzma.decompress(raw) if path.suffix == ".xz" else raw))
    state: dict[str, torch.Tensor] = {}
    for key in arrays.files:
        name, _, kind = key.partition("|")
        if kind in ("s", "z"):
            continue
        value = arrays[key].astype(np.float32)
        if kind == "q":
            zero = arrays[name + "|z"] if name + "|z" in arrays.files else np.int16(0)
            value = (value - zero.astype(np.float32)) * arrays[name + "|s"]
        state[name] = torch.from_numpy(np.ascontiguousarray(value, np.float32))
    return state


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("onnx", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    arrays = convert(args.onnx)
    save(arrays, args.out)
    print(f"{len(arrays)} arrays, {args.out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
