"""The peers in processes of their own: ``python -m benchmarks.peers NAME THREADS``; the protocol is `worker`'s.

NumPy (OpenBLAS), ONNX Runtime, PyTorch (oneDNN, MKL) and OpenVINO, each as its users call it: inputs bound
once, weights known ahead, no conversion in the timed call. `ops` sets the libraries' thread counts in the environment.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from benchmarks.suite import Spec, inputs, model
from benchmarks.worker import serve

__all__ = ["PEERS", "installed"]

Call: TypeAlias = Callable[[], Any]


def _numpy(spec: Spec, n_threads: int) -> Call:
    given, known = inputs(spec)
    values = {**given, **known}
    kind = spec["kind"]
    if kind in ("matmul", "bmm") and not spec.get("epi"):
        out = np.empty((*values["a"].shape[:-1], values["b"].shape[-1]), np.float32)
        return lambda: np.matmul(values["a"], values["b"], out=out)
    x = values.get("x")
    if kind == "add":
        return lambda: np.add(values["a"], values["b"])
    if x is None or kind not in ("softmax", "sum", "transpose", "gather"):
        raise ValueError(f"NumPy has no fast form of {spec['name']}")
    if kind == "softmax":

        def softmax() -> Any:
            e = np.exp(x - x.max(-1, keepdims=True))
            e /= e.sum(-1, keepdims=True)
            return e

        return softmax
    if kind == "sum":
        return lambda: x.sum(axis=spec["axis"])
    if kind == "gather":
        return lambda: np.take(x, values["i"], axis=0)
    view = x.transpose(spec.get("perm", [1, 0]))
    turned = np.empty(view.shape, np.float32)

    def transpose() -> Any:
        turned[...] = view
        return turned

    return transpose


def _onnxruntime(spec: Spec, n_threads: int) -> Call:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = n_threads, 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model(spec).SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    binding = session.io_binding()
    for name, array in inputs(spec)[0].items():
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
    session.run_with_iobinding(_bound(binding))
    result = binding.get_outputs()[0]
    binding.bind_ortvalue_output("y", result)
    view = result.numpy()

    def call() -> Any:
        session.run_with_iobinding(binding)
        return view

    session.run_with_iobinding(binding)
    view = result.numpy()
    return call


def _bound(binding: Any) -> Any:
    binding.bind_output("y")
    return binding


def _torch(spec: Spec, n_threads: int) -> Call:
    import torch
    import torch.nn.functional as nn

    torch.set_num_threads(n_threads)
    torch.set_grad_enabled(False)
    given, known = inputs(spec)
    t = {n: torch.from_numpy(v) for n, v in {**given, **known}.items()}
    kind, x = spec["kind"], t.get("x")
    if kind == "matmul" and spec["epi"]:
        return lambda: nn.gelu(torch.addmm(t["bias"], t["a"], t["b"]))
    if kind in ("matmul", "bmm"):
        return lambda: torch.matmul(t["a"], t["b"])
    if kind == "conv":
        f = {1: nn.conv1d, 2: nn.conv2d, 3: nn.conv3d}[len(spec["s"])]
        tail = (spec["s"], spec["p"], spec["d"], spec["g"])
        if spec["epi"]:
            return lambda: nn.relu(f(x, t["w"], t["bias"], *tail))
        return lambda: f(x, t["w"], None, *tail)
    calls: dict[str, Call] = {
        "convT": lambda: nn.conv_transpose2d(x, t["w"], None, spec["s"], spec["p"]),
        "softmax": lambda: nn.softmax(x, -1),
        "layernorm": lambda: nn.layer_norm(x, (x.shape[-1],), t["g"], t["b"], 1e-5),
        "rmsnorm": lambda: nn.rms_norm(x, (x.shape[-1],), t["g"], 1e-5),
        "gelu": lambda: nn.gelu(x),
        "sum": lambda: x.sum(dim=spec["axis"]),
        "transpose": lambda: x.permute(spec.get("perm", [1, 0])).contiguous(),
        "pool": lambda: _torch_pool(x, spec),
        "add": lambda: torch.add(t["a"], t["b"]),
        "gather": lambda: torch.index_select(x, 0, t["i"]),
        "attention": lambda: nn.scaled_dot_product_attention(t["q"], t["k"], t["v"]),
    }
    return calls[kind]


def _torch_pool(x: Any, spec: Spec) -> Any:
    import torch.nn.functional as nn

    dims = len(spec["k"])
    if spec["mode"] == "max":
        most = {1: nn.max_pool1d, 2: nn.max_pool2d, 3: nn.max_pool3d}[dims]
        return most(x, spec["k"], spec["s"], spec["p"])
    mean = {1: nn.avg_pool1d, 2: nn.avg_pool2d, 3: nn.avg_pool3d}[dims]
    return mean(x, spec["k"], spec["s"], spec["p"], count_include_pad=False)


def _openvino(spec: Spec, n_threads: int) -> Call:
    import openvino

    core = openvino.Core()
    settings = {
        "INFERENCE_NUM_THREADS": n_threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": 1,
    }  # fmt: skip
    compiled = core.compile_model(core.read_model(model(spec).SerializeToString()), "CPU", settings)
    request = compiled.create_infer_request()
    arrays = inputs(spec)[0]
    for name, array in arrays.items():
        request.set_tensor(name, openvino.Tensor(array, shared_memory=True))

    def call(_alive: object = arrays) -> Any:
        request.infer()
        return request.get_output_tensor(0).data

    return call


PEERS: dict[str, tuple[str, Callable[[Spec, int], Call]]] = {
    "numpy": ("numpy", _numpy),
    "onnxruntime": ("onnxruntime", _onnxruntime),
    "torch": ("torch", _torch),
    "openvino": ("openvino", _openvino),
}


def installed() -> list[str]:
    """The peers that this environment has."""
    return [name for name, (module, _) in PEERS.items() if importlib.util.find_spec(module)]


def main() -> None:
    name, n_threads = sys.argv[1], int(sys.argv[2])

    def prepare(request: dict[str, Any]) -> tuple[Call, Spec | None, str]:
        spec = request["spec"]
        return PEERS[name][1](spec, n_threads), spec, name

    serve(prepare)


if __name__ == "__main__":
    main()
