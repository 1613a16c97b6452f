#!/usr/bin/env python3
"""Triton's AMDGCN for the kernels of examples 01, 02, 03 and 05, compiled offline: no GPU, no torch.

Usage: PYTHON_WITH_TRITON triton_amdgcn.py DIR ARCH CASE [CASE…]
A case is 'KERNEL NAME=VALUE…' as compare_amdgcn.py spells it. Writes DIR/LABEL.{ttgir,llir,amdgcn} for each, LABEL being
the case's words joined by '_'. The kernels are those of the examples line by line, with the facts about arguments that
--compile-only assumes: pointers and integers divisible by 16, unit strides known to be 1. Tensors are taken to be smaller
than 2 GiB, as Triton finds at a launch: without that it uses no buffer instructions.
"""
import pathlib, sys
import triton, triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

WAVE = {"gfx9": 64, "gfx1": 32}
ELEMENTS = {"f16": "fp16", "bf16": "bf16", "f8e4m3": "fp8e4nv", "f8e5m2": "fp8e5", "f8e4m3fnuz": "fp8e4b8",
            "f8e5m2fnuz": "fp8e5b16", "i8": "i8", "f32": "fp32", "f64": "fp64"}


@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def softmax(x, y, ld, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    col = tl.arange(0, BLOCK)
    inside = col < cols
    v = tl.load(x + row * ld + col, mask=inside, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * ld + col, e / tl.sum(e, 0), mask=inside)


@triton.jit
def persistent_softmax(x, y, ld, rows, cols, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    col = tl.arange(0, BLOCK)
    inside = col < cols
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        v = tl.load(x + row * ld + col, mask=inside, other=-float("inf"))
        e = tl.exp(v - tl.max(v, 0))
        tl.store(y + row * ld + col, e / tl.sum(e, 0), mask=inside)


@triton.jit
def layer_norm(x, w, b, y, mean, rstd, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    col = tl.arange(0, BLOCK)
    inside = col < cols
    n = cols.to(tl.float32)
    v = tl.load(x + row * cols + col, mask=inside, other=0.0)
    mu = tl.sum(v, 0) / n
    d = tl.where(inside, v - mu, 0.0)
    rs = tl.rsqrt(tl.sum(d * d, 0) / n + eps)
    tl.store(mean + row, mu)
    tl.store(rstd + row, rs)
    tl.store(y + row * cols + col, d * rs * tl.load(w + col, mask=inside) + tl.load(b + col, mask=inside), mask=inside)


@triton.jit
def matmul(A, B, C, M, N, K, am, ak, bk, bn, cm, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
           GROUP: tl.constexpr, SUM: tl.constexpr, NOTHING: tl.constexpr, PRECISION: tl.constexpr):
    pid = tl.program_id(0)
    in_group = tl.cdiv(N, BN) * GROUP
    first = pid // in_group * GROUP
    rows = tl.minimum(tl.cdiv(M, BM) - first, GROUP)
    m = (first + pid % in_group % rows) * BM + tl.arange(0, BM)
    n = pid % in_group // rows * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a = A + (m % M)[:, None] * am + k[None, :] * ak
    b = B + k[:, None] * bk + (n % N)[None, :] * bn
    acc = tl.zeros((BM, BN), dtype=SUM)
    for k0 in range(0, K, BK):
        left = K - k0
        x = tl.load(a, mask=k[None, :] < left, other=NOTHING)
        y = tl.load(b, mask=k[:, None] < left, other=NOTHING)
        acc = tl.dot(x, y, acc, out_dtype=SUM, input_precision=PRECISION)
        a += BK * ak
        b += BK * bk
    tl.store(C + m[:, None] * cm + n[None, :], acc.to(C.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


def source(kernel, settings):
    """The kernel with its types, constants and facts about its arguments."""
    number = lambda name, default: int(settings.get(name, default))
    if kernel == "matmul":
        element = ELEMENTS[settings["type"]]
        result = "i32" if element == "i8" else "fp16" if element.startswith("fp8") else element
        types = ["*" + element, "*" + element, "*" + result] + ["i32"] * 8
        constants = {"BM": number("bm", 64), "BN": number("bn", 64), "BK": number("bk", 32), "GROUP": 8, "PRECISION": "ieee",
                     "NOTHING": 0 if element == "i8" else 0.0,
                     "SUM": {"i8": tl.int32, "fp64": tl.float64}.get(element, tl.float32),
                     ("am" if "trans-a" in settings else "ak"): 1, ("bk" if "trans-b" in settings else "bn"): 1}
    else:
        cols = number("cols", {"layer_norm": 1000}.get(kernel, 781))
        constants = {"BLOCK": number("block", 1024) if kernel == "vector_add" else triton.next_power_of_2(cols)}
        if kernel == "persistent_softmax":
            constants["STAGES"] = 2
        types = {"vector_add": ["*fp32"] * 3 + ["i32"], "softmax": ["*fp32"] * 2 + ["i32"] * 2,
                 "persistent_softmax": ["*fp32"] * 2 + ["i32"] * 3, "layer_norm": ["*fp32"] * 6 + ["i32", "fp32"]}[kernel]
    function = globals()[kernel]
    signature = {name: "constexpr" if name in constants else types[i] for i, name in enumerate(function.arg_names)}
    facts = {}
    for i, (name, type) in enumerate(signature.items()):
        if type.startswith("*"):
            facts[i,] = [["tt.divisibility", 16], ["tt.pointer_range", 32]]
        elif type == "i32":
            facts[i,] = [["tt.divisibility", 16]]
    return ASTSource(function, signature, {(list(signature).index(name),): value for name, value in constants.items()}, facts)


def main():
    folder, arch, cases = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    folder.mkdir(parents=True, exist_ok=True)
    for case in cases:
        kernel, *words = case.split()
        settings = dict(word.split("=") if "=" in word else (word, "") for word in words)
        cols = triton.next_power_of_2(int(settings.get("cols", 781)))
        warps = int(settings.get("warps", 4 if kernel in ("matmul", "vector_add") else min(max(cols // 1024, 4), 16)))
        compiled = triton.compile(source(kernel, settings), target=GPUTarget("hip", arch, WAVE[arch[:4]]),
                                  options={"num_warps": warps, "num_stages": int(settings.get("stages", 2))})
        for stage in ("ttgir", "llir", "amdgcn"):
            # The LDS of its kernels is named at the launch, not in the code object.
            text = compiled.asm[stage] + (f"; launched with LDS bytes: {compiled.metadata.shared}\n" if stage == "amdgcn" else "")
            (folder / f"{'_'.join(case.split())}.{stage}").write_text(text)


main()
