#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Makes optimizers.h5, the vectors of tests/unit/optim/rule_vectors_test.cpp.

    python3 tests/vectors/make_optimizer_vectors.py             # needs numpy and h5py
    python3 tests/vectors/make_optimizer_vectors.py --check     # also compares with TensorFlow, where it has the rule

Every rule is computed in float64 from its formula, written here once more and apart from Lockstep's code, over 50 steps.
Numbers that all steps multiply or divide by are rounded to float32 before, as Lockstep rounds them (betas, momentum, the
factor of a decay): else their rounding alone adds up to more than the test allows. For the same reason the rate of lion
and the threshold of proximal gradient descent, which every step subtracts, have short mantissas. Sources of the formulas:

    gradient_descent, momentum, adam, adagrad, adadelta, rmsprop, ftrl, proximal_gradient_descent, proximal_adagrad,
    adagrad_da     the kernels of TensorFlow 1 (ftrl: of TensorFlow 2, which adds g^2 without the shrinkage)
                   (--check compared these with TensorFlow 2.15.1; it has no AdamW, NAdam, AMSGrad or Lion of this form)
    adam with amsgrad    Reddi et al. 2018 in the form of Keras
    adamw, nadam, radam, coupled weight decay    torch.optim of PyTorch 2
    lars           algorithm 1 and equation 6 of You et al. 2017, arXiv:1708.03888; lamb  algorithm 2 of You et al. 2020,
                   arXiv:1904.00962; the net and the table are one variable each
    lion           algorithm 2 of Chen et al. 2023 and its authors' code
    *_schedules    the same with numbers that change from step to step; the weights of a mean add up to 1 - d_1 ... d_t

`net`: gradients of a net of 7-5-3 units with tanh, on batches of 4 random samples, along a path of gradient descent; the
same for all rules. `table`: 12 rows of 4, of which a step touches two to four. With `lazy` the others stay.
"""
import argparse
import pathlib
import sys

import h5py
import numpy as np

STEPS, KEPT = 50, (1, 10, 50)
ROWS, WIDTH = 12, 4


def f32(x):
    return float(np.float32(x))


class Share:
    """What is kept of a mean: a number, or a schedule from `first` to `last` in a straight line over `steps` steps."""

    def __init__(self, first, last=None, steps=1):
        self.first, self.last, self.steps = first, last, steps

    def at(self, t):
        """In update t, which is 1 at first."""
        if self.last is None:
            return f32(self.first)
        return f32((self.first - self.last) * (1 - min(t - 1, self.steps) / self.steps) + self.last)

    def product(self, t):
        """Of the updates 1 to t."""
        return self.at(1) ** t if self.last is None else np.prod([self.at(i) for i in range(1, t + 1)])

    def yaml(self):
        return f"{{polynomial_decay: {{initial: {self.first}, last: {self.last}, decay_steps: {self.steps}}}}}"


def share(number):
    return number if isinstance(number, Share) else Share(number)


def net_gradients():
    """The initial values, and the gradient of each step, flat."""
    random = np.random.default_rng(20)
    shapes = [(7, 5), (5,), (5, 3), (3,)]
    start = np.concatenate([random.standard_normal(s).ravel() * 0.5 for s in shapes]).astype(np.float32)
    w, gradients = start.astype(np.float64), []
    for _ in range(STEPS):
        w1, b1, w2, b2 = (part.reshape(s) for part, s in zip(np.split(w, np.cumsum([np.prod(s) for s in shapes])[:-1]), shapes))
        x, target = random.standard_normal((4, 7)), random.standard_normal((4, 3))
        hidden = np.tanh(x @ w1 + b1)
        error = (hidden @ w2 + b2 - target) / 4
        back = error @ w2.T * (1 - hidden ** 2)
        g = np.concatenate([(x.T @ back).ravel(), back.sum(0), (hidden.T @ error).ravel(), error.sum(0)]).astype(np.float32)
        gradients.append(g)
        w = w - 0.05 * g
    return start, np.stack(gradients)


def table_gradients():
    """The initial table, the touched rows of each step (-1: none) and their gradients."""
    random = np.random.default_rng(21)
    rows = np.full((STEPS, 4), -1, dtype=np.int32)
    for step in range(STEPS):
        count = random.integers(2, 5)
        rows[step, :count] = np.sort(random.choice(ROWS, count, replace=False))
    return (random.standard_normal((ROWS, WIDTH)).astype(np.float32), rows,
            random.standard_normal((STEPS, 4, WIDTH)).astype(np.float32))


class Rule:
    """slots(shape) gives the initial slots; step(w, g, slots, t) returns the new w and changes the slots."""

    def __init__(self, slots, step, weight_decay=0.0, decoupled=False, lr=None):
        self.initial, self.formula = slots, step
        self.weight_decay, self.decoupled, self.lr = weight_decay, decoupled, lr

    def slots(self, shape):
        return [np.full(shape, f32(value)) for value in self.initial]

    def step(self, w, g, slots, t):
        if self.decoupled:
            w = w * f32(1 - self.lr * self.weight_decay)
        else:
            g = g + self.weight_decay * w
        return self.formula(w, g, slots, t)


def gradient_descent(lr):
    return [], lambda w, g, s, t: w - lr * g


def momentum(lr, mu, nesterov=False):
    mu = f32(mu)

    def step(w, g, s, t):
        s[0] = mu * s[0] + g
        return w - (lr * g + lr * mu * s[0] if nesterov else lr * s[0])
    return [0], step


def adam(lr, beta1, beta2, eps, amsgrad=False, corrected_epsilon=False):
    beta1, beta2 = share(beta1), share(beta2)

    def step(w, g, s, t):
        b1, b2, product1, product2 = beta1.at(t), beta2.at(t), beta1.product(t), beta2.product(t)
        s[0] = b1 * s[0] + (1 - b1) * g
        s[1] = b2 * s[1] + (1 - b2) * g * g
        v = s[1]
        if amsgrad:
            v = s[2] = np.maximum(s[2], v)
        if corrected_epsilon:
            return w - lr / (1 - product1) * s[0] / (np.sqrt(v) / np.sqrt(1 - product2) + eps)
        return w - lr * np.sqrt(1 - product2) / (1 - product1) * s[0] / (np.sqrt(v) + eps)
    return [0, 0] + [0] * amsgrad, step


def nadam(lr, beta1, beta2, eps, decay):
    beta1, beta2 = share(beta1), share(beta2)

    def mu(t):
        return beta1.at(t) * (1 - 0.5 * 0.96 ** (t * decay))

    def step(w, g, s, t):
        b1, b2, product = beta1.at(t), beta2.at(t), np.prod([mu(i) for i in range(1, t + 1)])
        s[0] = b1 * s[0] + (1 - b1) * g
        s[1] = b2 * s[1] + (1 - b2) * g * g
        root = np.sqrt(s[1] / (1 - beta2.product(t))) + eps
        return w - lr * (1 - mu(t)) / (1 - product) * g / root - lr * mu(t + 1) / (1 - product * mu(t + 1)) * s[0] / root
    return [0, 0], step


def radam(lr, beta1, beta2, eps):
    beta1, beta2 = share(beta1), share(beta2)

    def step(w, g, s, t):
        b1, b2, product = beta1.at(t), beta2.at(t), beta2.product(t)
        s[0] = b1 * s[0] + (1 - b1) * g
        s[1] = b2 * s[1] + (1 - b2) * g * g
        mean = s[0] / (1 - beta1.product(t))
        rho_inf = 2 / (1 - b2) - 1
        rho = rho_inf - 2 * t * product / (1 - product)
        if rho <= 5:
            return w - lr * mean
        rect = np.sqrt((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho))
        return w - lr * mean * np.sqrt(1 - product) / (np.sqrt(s[1]) + eps) * rect
    return [0, 0], step


def adagrad(lr, start, eps=0.0):
    def step(w, g, s, t):
        s[0] = s[0] + g * g
        return w - lr * g / (np.sqrt(s[0]) + eps)
    return [start], step


def adadelta(lr, kept, eps):
    kept = share(kept)

    def step(w, g, s, t):
        rho = kept.at(t)
        s[0] = rho * s[0] + (1 - rho) * g * g
        move = g * np.sqrt(s[1] + eps) / np.sqrt(s[0] + eps)
        s[1] = rho * s[1] + (1 - rho) * move * move
        return w - lr * move
    return [0, 0], step


def rmsprop(lr, kept, momentum, eps, centered=False):
    kept, momentum = share(kept), share(momentum)

    def step(w, g, s, t):
        decay, mu = kept.at(t), momentum.at(t)
        s[0] = decay * s[0] + (1 - decay) * g * g
        variance = s[0]
        if centered:
            s[2] = decay * s[2] + (1 - decay) * g
            variance = s[0] - s[2] ** 2
        s[1] = mu * s[1] + lr * g / np.sqrt(variance + eps)
        return w - s[1]
    return [1, 0, 0], step


def ftrl(lr, power=-0.5, start=0.1, l1=0.0, l2=0.0, shrinkage=0.0, beta=0.0):
    def step(w, g, s, t):
        after = s[0] + g * g
        sigma = (after ** -power - s[0] ** -power) / lr
        s[1] = s[1] + g + 2 * shrinkage * w - sigma * w
        s[0] = after
        y = (after ** -power + beta) / lr + 2 * l2
        return np.where(np.abs(s[1]) > l1, (l1 * np.sign(s[1]) - s[1]) / y, 0)
    return [start, 0], step


def proximal_gradient_descent(lr, l1, l2):
    def step(w, g, s, t):
        u = w - lr * g
        return np.sign(u) * np.maximum(np.abs(u) - lr * l1, 0) / f32(1 + lr * l2)
    return [], step


def proximal_adagrad(lr, start, l1, l2):
    def step(w, g, s, t):
        s[0] = s[0] + g * g
        rate = lr / np.sqrt(s[0])
        u = w - rate * g
        return np.sign(u) * np.maximum(np.abs(u) - rate * l1, 0) / (1 + rate * l2)
    return [start], step


def adagrad_da(lr, start, l1, l2):
    def step(w, g, s, t):
        s[0] = s[0] + g
        s[1] = s[1] + g * g
        return -np.sign(s[0]) * lr * np.maximum(np.abs(s[0]) - l1 * t, 0) / (l2 * t * lr + np.sqrt(s[1]))
    return [0, start], step


def lion(lr, beta1, beta2):
    beta1, beta2 = share(beta1), share(beta2)

    def step(w, g, s, t):
        b1, b2 = beta1.at(t), beta2.at(t)
        direction = np.sign(b1 * s[0] + (1 - b1) * g)
        s[0] = b2 * s[0] + (1 - b2) * g
        return w - lr * direction
    return [0], step


def ratio(w, x, rate, decay=0.0, epsilon=0.0, low=0.0, high=np.inf):
    """The factor of the plain rate; rate: eta of LARS."""
    w_norm, x_norm = np.linalg.norm(w), np.linalg.norm(x)
    if w_norm == 0 or x_norm == 0:
        return 1.0
    return rate * np.clip(w_norm, low, high) / (x_norm + decay * w_norm + epsilon)


def lars(lr, mu, eta, decay=0.0, epsilon=0.0, nesterov=False):
    lr, mu, eta = f32(lr), f32(mu), f32(eta)

    def step(w, g, s, t):
        move = lr * ratio(w, g, eta, decay, epsilon) * (g + decay * w)
        s[0] = mu * s[0] + move
        return w - (mu * s[0] + move if nesterov else s[0])
    return [0], step


def lamb(lr, beta1, beta2, eps, decay, low=0.0, high=np.inf):
    lr, beta1, beta2, decay = f32(lr), share(beta1), share(beta2), f32(decay)

    def step(w, g, s, t):
        b1, b2 = beta1.at(t), beta2.at(t)
        s[0] = b1 * s[0] + (1 - b1) * g
        s[1] = b2 * s[1] + (1 - b2) * g * g
        u = s[0] / (1 - beta1.product(t)) / (np.sqrt(s[1] / (1 - beta2.product(t))) + eps) + decay * w
        return w - lr * ratio(w, u, 1, 0, 0, low, high) * u
    return [0, 0], step


FALLS, RISES = Share(0.95, 0.6, 30), Share(0.7, 0.97, 37)  # as the companion of a rate with one cycle, and the other way

# name: (the option as YAML without its braces, the rule)
CASES = {
    "gradient_descent": ("gradient_descent: {learning_rate: 0.037", Rule(*gradient_descent(0.037))),
    "gradient_descent_decay": ("gradient_descent: {learning_rate: 0.037, weight_decay: 0.013",
                               Rule(*gradient_descent(0.037), weight_decay=0.013)),
    "momentum": ("momentum: {learning_rate: 0.023, momentum: 0.83", Rule(*momentum(0.023, 0.83))),
    "nesterov": ("momentum: {learning_rate: 0.023, momentum: 0.83, nesterov: true", Rule(*momentum(0.023, 0.83, True))),
    "momentum_decay": ("momentum: {learning_rate: 0.023, momentum: 0.83, weight_decay: 0.017",
                       Rule(*momentum(0.023, 0.83), weight_decay=0.017)),
    "momentum_decoupled": ("momentum: {learning_rate: 0.023, momentum: 0.83, weight_decay: 0.17, decoupled_weight_decay: true",
                           Rule(*momentum(0.023, 0.83), weight_decay=0.17, decoupled=True, lr=0.023)),
    "adam": ("adam: {learning_rate: 0.017, beta1: 0.87, beta2: 0.97, epsilon: 0.0003", Rule(*adam(0.017, 0.87, 0.97, 0.0003))),
    "adam_decay": ("adam: {learning_rate: 0.017, beta1: 0.87, beta2: 0.97, epsilon: 0.0003, weight_decay: 0.021",
                   Rule(*adam(0.017, 0.87, 0.97, 0.0003), weight_decay=0.021)),
    "amsgrad": ("adam: {learning_rate: 0.017, beta1: 0.87, beta2: 0.97, epsilon: 0.0003, amsgrad: true",
                Rule(*adam(0.017, 0.87, 0.97, 0.0003, True))),
    "adamw": ("adamw: {learning_rate: 0.017, beta1: 0.87, beta2: 0.97, epsilon: 0.0003, weight_decay: 0.11",
              Rule(*adam(0.017, 0.87, 0.97, 0.0003, False, True), weight_decay=0.11, decoupled=True, lr=0.017)),
    "adamw_amsgrad": ("adamw: {learning_rate: 0.017, amsgrad: true",
                      Rule(*adam(0.017, 0.9, 0.999, 1e-8, True, True), weight_decay=0.01, decoupled=True, lr=0.017)),
    "nadam": ("nadam: {learning_rate: 0.017, beta1: 0.87, beta2: 0.97, epsilon: 0.0003, momentum_decay: 0.007",
              Rule(*nadam(0.017, 0.87, 0.97, 0.0003, 0.007))),
    "nadam_decay": ("nadam: {learning_rate: 0.017, weight_decay: 0.013",
                    Rule(*nadam(0.017, 0.9, 0.999, 1e-8, 0.004), weight_decay=0.013)),
    "radam": ("radam: {learning_rate: 0.017, beta1: 0.87, beta2: 0.97, epsilon: 0.0003", Rule(*radam(0.017, 0.87, 0.97, 0.0003))),
    "radam_defaults": ("radam: {learning_rate: 0.017, weight_decay: 0.013", Rule(*radam(0.017, 0.9, 0.999, 1e-8), weight_decay=0.013)),
    "radam_decoupled": ("radam: {learning_rate: 0.017, beta2: 0.5, weight_decay: 0.11, decoupled_weight_decay: true",
                        Rule(*radam(0.017, 0.9, 0.5, 1e-8), weight_decay=0.11, decoupled=True, lr=0.017)),
    "adagrad": ("adagrad: {learning_rate: 0.071, initial_accumulator: 0.23", Rule(*adagrad(0.071, 0.23))),
    "adagrad_epsilon": ("adagrad: {learning_rate: 0.071, initial_accumulator: 0, epsilon: 0.03", Rule(*adagrad(0.071, 0, 0.03))),
    "adagrad_decay": ("adagrad: {learning_rate: 0.071, weight_decay: 0.011", Rule(*adagrad(0.071, 0.1), weight_decay=0.011)),
    "adadelta": ("adadelta: {learning_rate: 0.83, rho: 0.91, epsilon: 0.00013", Rule(*adadelta(0.83, 0.91, 0.00013))),
    "adadelta_decay": ("adadelta: {learning_rate: 0.83, rho: 0.91, epsilon: 0.00013, weight_decay: 0.019",
                       Rule(*adadelta(0.83, 0.91, 0.00013), weight_decay=0.019)),
    "rmsprop": ("rmsprop: {learning_rate: 0.013, decay: 0.81, epsilon: 0.0007", Rule(*rmsprop(0.013, 0.81, 0, 0.0007))),
    "rmsprop_momentum": ("rmsprop: {learning_rate: 0.013, decay: 0.81, momentum: 0.71, epsilon: 0.0007",
                         Rule(*rmsprop(0.013, 0.81, 0.71, 0.0007))),
    "rmsprop_centered": ("rmsprop: {learning_rate: 0.013, decay: 0.81, epsilon: 0.0007, centered: true",
                         Rule(*rmsprop(0.013, 0.81, 0, 0.0007, True))),
    "rmsprop_both": ("rmsprop: {learning_rate: 0.013, decay: 0.81, momentum: 0.71, epsilon: 0.0007, centered: true",
                     Rule(*rmsprop(0.013, 0.81, 0.71, 0.0007, True))),
    "rmsprop_decay": ("rmsprop: {learning_rate: 0.013, decay: 0.81, epsilon: 0.0007, weight_decay: 0.023",
                      Rule(*rmsprop(0.013, 0.81, 0, 0.0007), weight_decay=0.023)),
    "ftrl": ("ftrl: {learning_rate: 0.19", Rule(*ftrl(0.19))),
    "ftrl_all": ("ftrl: {learning_rate: 0.19, learning_rate_power: -0.37, initial_accumulator: 0.21, l1: 0.013, l2: 0.029, "
                 "l2_shrinkage: 0.031, beta: 0.43", Rule(*ftrl(0.19, -0.37, 0.21, 0.013, 0.029, 0.031, 0.43))),
    "ftrl_penalties": ("ftrl: {learning_rate: 0.19, l1: 0.013, l2: 0.029, l2_shrinkage: 0.031",
                       Rule(*ftrl(0.19, l1=0.013, l2=0.029, shrinkage=0.031))),
    "ftrl_constant_rate": ("ftrl: {learning_rate: 0.019, learning_rate_power: 0, l1: 0.013",
                           Rule(*ftrl(0.019, 0.0, l1=0.013))),
    "proximal_gradient_descent": ("proximal_gradient_descent: {learning_rate: 0.0390625, l1: 0.125, l2: 0.07",
                                  Rule(*proximal_gradient_descent(0.0390625, 0.125, 0.07))),
    "proximal_adagrad": ("proximal_adagrad: {learning_rate: 0.071, initial_accumulator: 0.23, l1: 0.05, l2: 0.07",
                         Rule(*proximal_adagrad(0.071, 0.23, 0.05, 0.07))),
    "adagrad_da": ("adagrad_da: {learning_rate: 0.071, initial_accumulator: 0.23, l1: 0.011, l2: 0.007",
                   Rule(*adagrad_da(0.071, 0.23, 0.011, 0.007))),
    "lion": ("lion: {learning_rate: 0.00341796875, beta1: 0.87, beta2: 0.97", Rule(*lion(0.00341796875, 0.87, 0.97))),
    "lion_decay": ("lion: {learning_rate: 0.00341796875, beta1: 0.87, beta2: 0.97, weight_decay: 0.7",
                   Rule(*lion(0.00341796875, 0.87, 0.97), weight_decay=0.7, decoupled=True, lr=0.00341796875)),
    "lars": ("lars: {learning_rate: 1.3, momentum: 0.83, trust_coefficient: 0.017, adapt_vectors: true",
             Rule(*lars(1.3, 0.83, 0.017))),
    "lars_decay": ("lars: {learning_rate: 1.3, momentum: 0.83, trust_coefficient: 0.017, weight_decay: 0.13, epsilon: 0.03, "
                   "adapt_vectors: true, decay_vectors: true", Rule(*lars(1.3, 0.83, 0.017, 0.13, 0.03))),
    "lars_nesterov": ("lars: {learning_rate: 1.3, momentum: 0.71, trust_coefficient: 0.017, weight_decay: 0.07, nesterov: true, "
                      "adapt_vectors: true, decay_vectors: true", Rule(*lars(1.3, 0.71, 0.017, 0.07, nesterov=True))),
    "lamb": ("lamb: {learning_rate: 0.013, beta1: 0.87, beta2: 0.97, epsilon: 0.0003, weight_decay: 0, adapt_vectors: true",
             Rule(*lamb(0.013, 0.87, 0.97, 0.0003, 0))),
    "lamb_decay": ("lamb: {learning_rate: 0.013, beta1: 0.87, beta2: 0.97, epsilon: 0.0003, weight_decay: 0.17, "
                   "adapt_vectors: true, decay_vectors: true", Rule(*lamb(0.013, 0.87, 0.97, 0.0003, 0.17))),
    "lamb_limits": ("lamb: {learning_rate: 0.013, beta1: 0.87, beta2: 0.97, norm_limits: [0.5, 3], adapt_vectors: true, "
                    "decay_vectors: true", Rule(*lamb(0.013, 0.87, 0.97, 1e-6, 0.01, 0.5, 3))),
    "adam_schedules": (f"adam: {{learning_rate: 0.017, beta1: {FALLS.yaml()}, beta2: {RISES.yaml()}, epsilon: 0.0003",
                       Rule(*adam(0.017, FALLS, RISES, 0.0003))),
    "adamw_schedules": (f"adamw: {{learning_rate: 0.017, beta1: {FALLS.yaml()}, beta2: {RISES.yaml()}, amsgrad: true, "
                        "weight_decay: 0.11", Rule(*adam(0.017, FALLS, RISES, 1e-8, True, True), weight_decay=0.11,
                                                  decoupled=True, lr=0.017)),
    "nadam_schedules": (f"nadam: {{learning_rate: 0.017, beta1: {FALLS.yaml()}, beta2: {RISES.yaml()}, epsilon: 0.0003",
                        Rule(*nadam(0.017, FALLS, RISES, 0.0003, 0.004))),
    "adadelta_schedule": (f"adadelta: {{learning_rate: 0.83, rho: {RISES.yaml()}, epsilon: 0.00013",
                          Rule(*adadelta(0.83, RISES, 0.00013))),
    "rmsprop_schedules": (f"rmsprop: {{learning_rate: 0.013, decay: {RISES.yaml()}, momentum: {FALLS.yaml()}, "
                          "epsilon: 0.0007, centered: true", Rule(*rmsprop(0.013, RISES, FALLS, 0.0007, True))),
    "radam_schedules": (f"radam: {{learning_rate: 0.017, beta1: {FALLS.yaml()}, beta2: {RISES.yaml()}, epsilon: 0.0003",
                        Rule(*radam(0.017, FALLS, RISES, 0.0003))),
    "lion_schedules": (f"lion: {{learning_rate: 0.00341796875, beta1: {FALLS.yaml()}, beta2: {RISES.yaml()}",
                       Rule(*lion(0.00341796875, FALLS, RISES))),
    "lamb_schedules": (f"lamb: {{learning_rate: 0.013, beta1: {FALLS.yaml()}, beta2: {RISES.yaml()}, epsilon: 0.0003, "
                       "weight_decay: 0.17, adapt_vectors: true, decay_vectors: true",
                       Rule(*lamb(0.013, FALLS, RISES, 0.0003, 0.17))),
}


def run_net(rule, start, gradients):
    w, slots, kept = start.astype(np.float64), rule.slots(start.shape), []
    for t in range(1, STEPS + 1):
        w = rule.step(w, gradients[t - 1].astype(np.float64), slots, t)
        if t in KEPT:
            kept.append(w)
    return np.stack(kept)


def run_table(rule, table, rows, values, lazy):
    w, slots, kept = table.astype(np.float64), rule.slots(table.shape), []
    for t in range(1, STEPS + 1):
        given = [row for row in rows[t - 1] if row >= 0]
        g = np.zeros(table.shape)
        g[given] = values[t - 1][:len(given)]
        before = [w, *slots]
        new = list(slots)
        after = [rule.step(w, g, new, t), *new]
        if lazy:
            stays = np.ones(ROWS, dtype=bool)
            stays[given] = False
            after = [np.where(stays[:, None], old, moved) for old, moved in zip(before, after)]
        w, slots = after[0], after[1:]
        if t in KEPT:
            kept.append(w)
    return np.stack(kept)


def tensorflow_optimizers():
    """name of a case: a class of TensorFlow's with the case's numbers, in float64."""
    import tensorflow.compat.v1 as tf
    tf.disable_eager_execution()
    train = tf.train
    step = tf.Variable(0, dtype=tf.int64, trainable=False)
    return tf, step, {
        "gradient_descent": train.GradientDescentOptimizer(0.037),
        "momentum": train.MomentumOptimizer(0.023, f32(0.83)),
        "nesterov": train.MomentumOptimizer(0.023, f32(0.83), use_nesterov=True),
        "adam": train.AdamOptimizer(0.017, f32(0.87), f32(0.97), 0.0003),
        "adagrad": train.AdagradOptimizer(0.071, f32(0.23)),
        "adadelta": train.AdadeltaOptimizer(0.83, f32(0.91), 0.00013),
        "rmsprop": train.RMSPropOptimizer(0.013, f32(0.81), 0.0, 0.0007),
        "rmsprop_momentum": train.RMSPropOptimizer(0.013, f32(0.81), f32(0.71), 0.0007),
        "rmsprop_centered": train.RMSPropOptimizer(0.013, f32(0.81), 0.0, 0.0007, centered=True),
        "rmsprop_both": train.RMSPropOptimizer(0.013, f32(0.81), f32(0.71), 0.0007, centered=True),
        "ftrl": train.FtrlOptimizer(0.19, initial_accumulator_value=f32(0.1)),
        "ftrl_all": train.FtrlOptimizer(0.19, -0.37, f32(0.21), 0.013, 0.029, l2_shrinkage_regularization_strength=0.031, beta=0.43),
        "ftrl_penalties": train.FtrlOptimizer(0.19, -0.5, f32(0.1), 0.013, 0.029, l2_shrinkage_regularization_strength=0.031),
        "ftrl_constant_rate": train.FtrlOptimizer(0.019, 0.0, f32(0.1), 0.013),
        "proximal_gradient_descent": train.ProximalGradientDescentOptimizer(0.0390625, 0.125, 0.07),
        "proximal_adagrad": train.ProximalAdagradOptimizer(0.071, f32(0.23), 0.05, 0.07),
        "adagrad_da": train.AdagradDAOptimizer(0.071, step, f32(0.23), 0.011, 0.007),
    }


def run_tensorflow(tf, optimizer, step, start, gradients, dtype):
    w = tf.Variable(start.astype(dtype.as_numpy_dtype))
    g = tf.placeholder(dtype, start.shape)
    update = optimizer.apply_gradients([(g, w)], global_step=step)
    kept = []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for t in range(1, STEPS + 1):
            session.run(update, {g: gradients[t - 1]})
            if t in KEPT:
                kept.append(session.run(w))
    return np.stack(kept)


def check(start, gradients):
    """Compares the formulas with TensorFlow on `net`, in float64 where its kernels have it. Some of its numbers (rates,
    Adam's betas) are float32 in any case."""
    tf, step, optimizers = tensorflow_optimizers()
    bad = 0
    for name, optimizer in optimizers.items():
        dtype = tf.float32 if name.startswith(("proximal", "adagrad_da")) else tf.float64
        theirs = run_tensorflow(tf, optimizer, step, start, gradients, dtype)
        ours = run_net(CASES[name][1], start, gradients)
        difference = np.abs(theirs - ours).max() / np.abs(ours).max()
        good = difference < (1e-6 if dtype == tf.float64 else 5e-6)
        print(f"{name:28} {dtype.name:8} {difference:.1e}  {'' if good else 'DIFFERS'}")
        bad += not good
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare the formulas with TensorFlow")
    arguments = parser.parse_args()
    (start, gradients), (table, rows, values) = net_gradients(), table_gradients()
    if arguments.check:
        sys.exit(1 if check(start, gradients) else 0)
    path = pathlib.Path(__file__).resolve().with_name("optimizers.h5")
    rules = [rule for _, rule in CASES.values()]
    expected = {"net": [run_net(rule, start, gradients) for rule in rules],
                "table": [run_table(rule, table, rows, values, False) for rule in rules],
                "lazy": [run_table(rule, table, rows, values, True) for rule in rules]}
    with h5py.File(path, "w", libver=("v108", "v110")) as file:
        file.attrs["made_by"] = f"tests/vectors/{pathlib.Path(__file__).name}"
        file.attrs["numpy"] = np.__version__
        file.attrs["cases"] = np.bytes_("\n".join(yaml for yaml, _ in CASES.values()).encode())
        for name, array in {"start_of_net": start, "gradients_of_net": gradients, "start_of_table": table, "rows": rows,
                            "gradients_of_rows": values, "kept_steps": np.array(KEPT, dtype=np.int32)}.items():
            file.create_dataset(name, data=array)
        for name, arrays in expected.items():  # [case][kept step][...]
            file.create_dataset(name, data=np.stack(arrays).astype(np.float32))
    print(f"{len(CASES)} cases, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
