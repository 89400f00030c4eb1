#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Makes shampoo.h5, the vectors of tests/unit/optim/shampoo_test.cpp.

    python3 tests/vectors/make_shampoo_vectors.py             # needs numpy and h5py

Shampoo over 50 steps in float64 from its formulas, with random gradients whose sizes differ: Gupta, Koren and Singer 2018
(algorithm 1: L += G G^T, R += G^T G, W -= lr L^(-1/4) G R^(-1/4)), with the blocks, decaying statistics, roots every few steps
and grafting of Anil et al. 2020, and the mean of gradients in the place of G (Shi et al. 2023). To every eigenvalue epsilon times
the largest is added. Variables that are no matrices, and tables, move by AdamW.
"""
import argparse
import pathlib

import h5py
import numpy as np

STEPS, KEPT = 50, (1, 4, 10, 50)
# A tall matrix (a convolution), a wide one, a table that is left to AdamW, a bias.
SHAPES = {"conv/kernel": (3, 3, 4, 6), "dense/kernel": (9, 31), "words/embeddings": (6, 4), "dense/bias": (31,)}
CASES = {
    # One block per matrix; norms of Adam; roots at 8, 10, 15 ... Before step 7 the statistics of the convolution are singular: then
    # the ridge is all that a root has, and rounding of the statistics to float32 counts, unless the ridge is larger (last case).
    "shampoo: {learning_rate: 0.02, root_every: 5, start_step: 8": dict(lr=0.02, every=5, start=8),
    # Blocks of unequal sizes, stale roots, a start between two roots.
    "shampoo: {learning_rate: 0.05, block_size: 8, root_every: 4, start_step: 6, grafting: sgd, beta1: 0.8, weight_decay: 0":
        dict(lr=0.05, block=8, every=4, start=6, graft="sgd", b1=0.8, decay=0.0),
    # The paper of 2018: sums, no mean of gradients, no grafting, roots in every step.
    "shampoo: {learning_rate: 0.1, root_every: 1, statistics_decay: 1, beta1: 0, grafting: none, weight_decay: 0, root_epsilon: 1e-4":
        dict(lr=0.1, every=1, start=1, keep=1.0, b1=0.0, graft="none", decay=0.0, ridge=1e-4),
    "shampoo: {learning_rate: 0.01, block_size: 16, root_every: 3, grafting: none, statistics_decay: 0.9, exponent: 0.5, weight_decay: 0.3":
        dict(lr=0.01, block=16, every=3, start=3, graft="none", keep=0.9, exponent=0.5, decay=0.3),
    "shampoo: {learning_rate: 0.03, block_size: 12, root_every: 2, grafting: rmsprop, beta2: 0.99, epsilon: 1e-3, adamw_rate_factor: 0.5":
        dict(lr=0.03, block=12, every=2, start=2, graft="rmsprop", b2=0.99, eps=1e-3, adamw_factor=0.5),
    "shampoo: {learning_rate: 0.2, block_size: 10, root_every: 7, start_step: 1, grafting: adagrad, epsilon: 0.1, root_epsilon: 1e-3":
        dict(lr=0.2, block=10, every=7, start=1, graft="adagrad", eps=0.1, ridge=1e-3),
}


def f32(x):
    return float(np.float32(x))


def parts(extent, most):
    count = -(-extent // most)
    return [slice(extent * i // count, extent * (i + 1) // count) for i in range(count)]


def inverse_root(matrix, exponent, ridge):
    values, vectors = np.linalg.eigh(matrix)
    values = np.maximum(values, 0) + ridge * values[-1]
    return (vectors * values ** -exponent) @ vectors.T


def run(initial, gradients, lr, every, start, block=128, graft="adam", keep=0.95, exponent=0.25, ridge=1e-6, decay=0.1,
        adamw_factor=1.0, b1=0.9, b2=0.95, eps=1e-8):
    b1, b2, eps = f32(b1), f32(b2), f32(eps)
    w = {name: value.astype(np.float64) for name, value in initial.items()}
    m = {name: np.zeros_like(value) for name, value in w.items()}
    v = {name: np.zeros_like(value) for name, value in w.items()}
    state, kept = {}, []
    for t in range(1, STEPS + 1):
        for name, value in w.items():
            g = gradients[name][t - 1].astype(np.float64)
            m[name] = b1 * m[name] + (1 - b1) * g
            mean = m[name] / (1 - b1 ** t)
            matrix = name.endswith("kernel")
            v[name] = v[name] + g * g if matrix and graft == "adagrad" else b2 * v[name] + (1 - b2) * g * g
            corrected = v[name] if matrix and graft in ("adagrad", "rmsprop") else v[name] / (1 - b2 ** t)
            direction = mean / (np.sqrt(corrected) + eps)
            if not matrix:
                rate = lr * adamw_factor
                w[name] = value * f32(1 - rate * decay) - rate * direction
                continue
            if graft in ("none", "sgd"):
                direction = mean
            flat = (g.size // g.shape[-1], g.shape[-1])
            g, mean, direction = g.reshape(flat), mean.reshape(flat), direction.reshape(flat).copy()
            for rows in parts(flat[0], block):
                for columns in parts(flat[1], block):
                    own = state.setdefault((name, rows.start, columns.start), {"L": 0.0, "R": 0.0})
                    G, gain = g[rows, columns], 1 if keep == 1 else 1 - keep
                    own["L"] = keep * own["L"] + gain * G @ G.T
                    own["R"] = keep * own["R"] + gain * G.T @ G
                    if t == start or (t > start and t % every == 0):
                        correction = 1 if keep == 1 else 1 - keep ** t
                        own["A"] = inverse_root(own["L"] / correction, exponent, ridge)
                        own["B"] = inverse_root(own["R"] / correction, exponent, ridge)
                    if t < start:
                        continue
                    result = own["A"] @ mean[rows, columns] @ own["B"]
                    if graft != "none":
                        result *= np.linalg.norm(direction[rows, columns]) / np.linalg.norm(result)
                    direction[rows, columns] = result
            w[name] = value * f32(1 - lr * decay) - lr * direction.reshape(value.shape)
        if t in KEPT:
            kept.append(np.concatenate([w[name].ravel() for name in SHAPES]))
    return np.stack(kept)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path(__file__).with_name("shampoo.h5"))
    options = parser.parse_args()
    random = np.random.default_rng(16)
    start = {name: random.standard_normal(shape).astype(np.float32) * np.float32(0.3) for name, shape in SHAPES.items()}
    gradients = {name: (random.standard_normal((STEPS, *shape)) * random.uniform(0.01, 2, (STEPS, *[1] * len(shape)))
                        + random.standard_normal(shape) * 0.3).astype(np.float32) for name, shape in SHAPES.items()}
    with h5py.File(options.output, "w") as file:
        file.attrs["cases"] = np.bytes_("\n".join(CASES))
        file["kept_steps"] = np.array(KEPT, dtype=np.int32)
        for name in SHAPES:
            file.create_dataset(f"start/{name}", data=start[name].ravel())
            file.create_dataset(f"gradients/{name}", data=gradients[name].reshape(STEPS, -1), compression="gzip", shuffle=True)
        file["expected"] = np.stack([run(start, gradients, **options) for options in CASES.values()]).astype(np.float32)


if __name__ == "__main__":
    main()
