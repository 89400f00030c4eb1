#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Makes muon.h5, the vectors of tests/unit/optim/muon_test.cpp.

    python3 tests/vectors/make_muon_vectors.py             # needs numpy and h5py
    python3 tests/vectors/make_muon_vectors.py --check     # also compares with torch.optim.Muon (PyTorch 2.9 or later)

Muon over 50 steps in float64 from its formula (Jordan et al. 2024; factors of Liu et al. 2025), with random gradients whose
sizes differ. Lockstep's matrices are rows x units, PyTorch's units x rows: the formula is that of the transposed matrix.
PyTorch computes the iterations in bfloat16, so --check allows a few per cent of the step.
"""
import argparse
import pathlib

import h5py
import numpy as np

STEPS, KEPT = 50, (1, 10, 50)
# A tall matrix (a convolution), a wide one, a table that is left to AdamW, a bias.
SHAPES = {"conv/kernel": (3, 3, 4, 6), "dense/kernel": (9, 31), "words/embeddings": (6, 4), "dense/bias": (31,)}
CASES = {
    "muon: {learning_rate: 0.02": {},
    "muon: {learning_rate: 0.05, momentum: 0.8, nesterov: false, iterations: 4, scale: shape, weight_decay: 0":
        dict(lr=0.05, momentum=0.8, nesterov=False, iterations=4, shape_scale=True, decay=0.0),
    "muon: {learning_rate: 0.01, momentum: 0.9, weight_decay: 0.3, adamw_rate_factor: 0.5, beta1: 0.8, beta2: 0.99":
        dict(lr=0.01, momentum=0.9, decay=0.3, adamw_factor=0.5, b1=0.8, b2=0.99),
}


def f32(x):
    return float(np.float32(x))


def orthogonalized(x, iterations):
    x = x / max(np.linalg.norm(x), 2.0 ** -23)
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    for _ in range(iterations):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x.T if tall else x


def run(start, gradients, lr=0.02, momentum=0.95, nesterov=True, iterations=5, shape_scale=False, decay=0.1, adamw_factor=1.0,
        b1=0.9, b2=0.95, eps=1e-8):
    momentum, b1, b2 = f32(momentum), f32(b1), f32(b2)
    gain = f32(np.float32(1) - np.float32(momentum))
    w = {name: value.astype(np.float64) for name, value in start.items()}
    m = {name: np.zeros_like(value) for name, value in w.items()}
    v = {name: np.zeros_like(value) for name, value in w.items()}
    kept = []
    for t in range(1, STEPS + 1):
        for name, value in w.items():
            g = gradients[name][t - 1].astype(np.float64)
            if name.endswith("kernel"):
                m[name] += gain * (g - m[name])
                u = g + momentum * (m[name] - g) if nesterov else m[name]
                rows, units = g.size // g.shape[-1], g.shape[-1]
                factor = max(1, units / rows) ** 0.5 if shape_scale else 0.2 * max(rows, units) ** 0.5
                direction = orthogonalized(u.reshape(rows, units), iterations).reshape(g.shape)
                w[name] = value * f32(1 - lr * decay) - lr * factor * direction
            else:
                rate = lr * adamw_factor
                m[name] = b1 * m[name] + (1 - b1) * g
                v[name] = b2 * v[name] + (1 - b2) * g * g
                w[name] = value * f32(1 - rate * decay) - rate * (m[name] / (1 - b1 ** t)) / (
                    np.sqrt(v[name] / (1 - b2 ** t)) + eps)
        if t in KEPT:
            kept.append(np.concatenate([w[name].ravel() for name in SHAPES]))
    return np.stack(kept)


def compare_with_pytorch(start, gradients):
    import torch
    for scale in (False, True):
        ours = run(start, gradients, shape_scale=scale, decay=0.1, lr=0.02)[-1]
        place = 0
        for name, shape in SHAPES.items():
            part = ours[place:place + np.prod(shape)].reshape(-1, shape[-1])
            place += np.prod(shape)
            if not name.endswith("kernel"):
                continue
            w = torch.nn.Parameter(torch.tensor(start[name].reshape(-1, shape[-1]).T.copy()))
            optimizer = torch.optim.Muon([w], lr=0.02, weight_decay=0.1,
                                         adjust_lr_fn="original" if scale else "match_rms_adamw")
            for g in gradients[name]:
                w.grad = torch.tensor(g.reshape(-1, shape[-1]).T.copy())
                optimizer.step()
            moved = np.abs(part - start[name].reshape(part.shape)).max()
            print(f"{name}, {'shape' if scale else 'adamw'}: differs from torch.optim.Muon by "
                  f"{np.abs(w.detach().numpy().T - part).max() / moved:.4f} of the largest move")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path(__file__).with_name("muon.h5"))
    options = parser.parse_args()
    random = np.random.default_rng(22)
    start = {name: random.standard_normal(shape).astype(np.float32) * np.float32(0.3) for name, shape in SHAPES.items()}
    gradients = {name: (random.standard_normal((STEPS, *shape)) * random.uniform(0.01, 2, (STEPS, *[1] * len(shape)))
                        + random.standard_normal(shape) * 0.3).astype(np.float32) for name, shape in SHAPES.items()}
    if options.check:
        compare_with_pytorch(start, gradients)
    with h5py.File(options.output, "w") as file:
        file.attrs["cases"] = np.bytes_("\n".join(CASES))
        file["kept_steps"] = np.array(KEPT, dtype=np.int32)
        for name in SHAPES:
            file.create_dataset(f"start/{name}", data=start[name].ravel())
            file.create_dataset(f"gradients/{name}", data=gradients[name].reshape(STEPS, -1), compression="gzip", shuffle=True)
        file["expected"] = np.stack([run(start, gradients, **options) for options in CASES.values()]).astype(np.float32)


if __name__ == "__main__":
    main()
