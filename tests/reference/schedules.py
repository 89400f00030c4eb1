# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Values of schedules, as schedules.json next to this file, which tests/unit/optim/schedule_test.cpp reads.

    python tests/reference/schedules.py       # needs nothing else; the test needs neither

The formulas are those of the source of TensorFlow 1.15, python/training/learning_rate_decay.py and
keras/optimizer_v2/learning_rate_schedule.py, operation by operation, each rounded to float32 as TensorFlow rounds it;
and those of PyTorch 1.13, torch/optim/lr_scheduler.py, in double, as PyTorch computes them. Neither library is
called: `source` says whose formula a case has.
"""
import json
import math
import pathlib
import struct

cases = []


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


class F:
    """A float32 number; each operation is rounded once."""

    def __init__(self, value):
        self.value = f32(value.value if isinstance(value, F) else value)

    def __add__(self, other):
        return F(self.value + F(other).value)

    def __radd__(self, other):
        return F(F(other).value + self.value)

    def __sub__(self, other):
        return F(self.value - F(other).value)

    def __rsub__(self, other):
        return F(F(other).value - self.value)

    def __mul__(self, other):
        return F(self.value * F(other).value)

    __rmul__ = __mul__

    def __truediv__(self, other):
        return F(self.value / F(other).value)

    def __neg__(self):
        return F(-self.value)


def power(a, b):
    return F(math.pow(F(a).value, F(b).value))


def cos(a):
    return F(math.cos(a.value))


def exp(a):
    return F(math.exp(a.value))


def log(a):
    return F(math.log(a.value))


def floor(a):
    return F(math.floor(a.value))


def ceil(a):
    return F(math.ceil(a.value))


def least(a, b):
    return F(min(F(a).value, F(b).value))


def case(source, yaml, formula, steps):
    assert len(steps) >= 10, yaml
    values = [formula(s) for s in steps]
    cases.append({"source": source, "yaml": yaml, "steps": steps,
                  "values": [v.value if isinstance(v, F) else v for v in values]})


STEPS = [0, 1, 7, 24, 50, 75, 99, 100, 101, 149, 200, 250, 299, 1000]


def exponent(s, decay_steps, staircase):
    p = F(s) / F(decay_steps)
    return floor(p) if staircase else p


def exponential(rate, decay_steps, decay, staircase=False):
    return lambda s: F(rate) * power(F(decay), exponent(s, decay_steps, staircase))


def natural(rate, decay_steps, decay, staircase=False):
    return lambda s: F(rate) * exp(-F(decay) * exponent(s, decay_steps, staircase))


def inverse(rate, decay_steps, decay, staircase=False):
    return lambda s: F(rate) / (F(1) + F(decay) * exponent(s, decay_steps, staircase))


def piecewise(boundaries, values):
    def at(s):
        for boundary, value in zip(boundaries, values):
            if s <= boundary:
                return F(value)
        return F(values[-1])
    return at


def polynomial(rate, decay_steps, end=0.0001, exponent_=1.0, cycle=False):
    def at(s):
        length, step = F(decay_steps), F(s)
        if cycle:
            length = length * (F(1) if s == 0 else ceil(step / length))
        else:
            step = least(step, length)
        return (F(rate) - F(end)) * power(F(1) - step / length, F(exponent_)) + F(end)
    return at


def cosine(rate, decay_steps, alpha=0.0):
    def at(s):
        completed = least(F(s), F(decay_steps)) / F(decay_steps)
        decayed = F(0.5) * (F(1) + cos(F(math.pi) * completed))
        return F(rate) * ((F(1) - F(alpha)) * decayed + F(alpha))
    return at


def restarts(rate, first, t_mul=2.0, m_mul=1.0, alpha=0.0):
    def at(s):
        completed = F(s) / F(first)
        if t_mul == 1.0:
            i = floor(completed)
            completed = completed - i
        else:
            i = floor(log(F(1) - completed * (F(1) - F(t_mul))) / log(F(t_mul)))
            sum_r = (F(1) - power(F(t_mul), i)) / (F(1) - F(t_mul))
            completed = (completed - sum_r) / power(F(t_mul), i)
        decayed = F(0.5) * power(F(m_mul), i) * (F(1) + cos(F(math.pi) * completed))
        return F(rate) * ((F(1) - F(alpha)) * decayed + F(alpha))
    return at


def linear_cosine(rate, decay_steps, num_periods=0.5, alpha=0.0, beta=0.001):
    def at(s):
        step = least(F(s), F(decay_steps))
        linear = (F(decay_steps) - step) / F(decay_steps)
        fraction = F(2.0) * F(num_periods) * (step / F(decay_steps))
        decayed = F(0.5) * (F(1) + cos(F(math.pi) * fraction))
        return F(rate) * ((F(alpha) + linear) * decayed + F(beta))
    return at


def tensorflow():
    def add(yaml, formula, steps=None):
        case("TensorFlow 1.15", yaml, formula, steps or STEPS)
    add("exponential_decay: {initial: 0.1, decay_steps: 100, decay_rate: 0.96}", exponential(0.1, 100, 0.96))
    add("exponential_decay: {initial: 0.1, decay_steps: 100, decay_rate: 0.96, staircase: true}",
        exponential(0.1, 100, 0.96, True))
    add("natural_exp_decay: {initial: 0.1, decay_steps: 100, decay_rate: 0.5}", natural(0.1, 100, 0.5))
    add("natural_exp_decay: {initial: 0.1, decay_steps: 50, decay_rate: 0.5, staircase: true}",
        natural(0.1, 50, 0.5, True))
    add("inverse_time_decay: {initial: 0.1, decay_steps: 100, decay_rate: 0.5}", inverse(0.1, 100, 0.5))
    add("inverse_time_decay: {initial: 0.1, decay_steps: 25, decay_rate: 0.5, staircase: true}",
        inverse(0.1, 25, 0.5, True))
    add("piecewise_constant: {boundaries: [7, 100, 250], values: [0.1, 0.05, 0.01, 0.002]}",
        piecewise([7, 100, 250], [0.1, 0.05, 0.01, 0.002]))
    add("polynomial_decay: {initial: 0.1, decay_steps: 100}", polynomial(0.1, 100))
    add("polynomial_decay: {initial: 0.1, decay_steps: 100, last: 0.01, power: 0.5}", polynomial(0.1, 100, 0.01, 0.5))
    add("polynomial_decay: {initial: 0.1, decay_steps: 100, cycle: true}", polynomial(0.1, 100, cycle=True))
    add("polynomial_decay: {initial: 0.1, decay_steps: 75, last: 0.003, power: 2, cycle: true}",
        polynomial(0.1, 75, 0.003, 2.0, True))
    add("cosine_decay: {initial: 0.1, decay_steps: 250}", cosine(0.1, 250))
    add("cosine_decay: {initial: 0.1, decay_steps: 250, alpha: 0.1}", cosine(0.1, 250, 0.1))
    add("cosine_restarts: {initial: 0.1, first_decay_steps: 100}", restarts(0.1, 100))
    add("cosine_restarts: {initial: 0.1, first_decay_steps: 100, t_mul: 1, m_mul: 0.9, alpha: 0.05}",
        restarts(0.1, 100, 1.0, 0.9, 0.05))
    add("cosine_restarts: {initial: 0.1, first_decay_steps: 30, t_mul: 1.5, m_mul: 0.8}", restarts(0.1, 30, 1.5, 0.8),
        [0, 1, 7, 24, 29, 31, 50, 74, 76, 100, 200, 250, 1000])
    add("linear_cosine_decay: {initial: 0.1, decay_steps: 100}", linear_cosine(0.1, 100))
    add("linear_cosine_decay: {initial: 0.1, decay_steps: 250, num_periods: 2, alpha: 0.1, beta: 0.01}",
        linear_cosine(0.1, 250, 2.0, 0.1, 0.01))
    # Without variance the noisy one is the other.
    add("noisy_linear_cosine_decay: {initial: 0.1, decay_steps: 250, num_periods: 2, alpha: 0.1, beta: 0.01, "
        "initial_variance: 0}", linear_cosine(0.1, 250, 2.0, 0.1, 0.01))


def one_cycle(peak, total, initial, last, share_up=0.3, linear=False, three=False):
    """OneCycleLR.get_lr."""
    first_end = share_up * total - 1
    phases = ([(first_end, initial, peak), (2 * share_up * total - 2, peak, initial), (total - 1, initial, last)]
              if three else [(first_end, initial, peak), (total - 1, peak, last)])

    def at(s):
        begin = 0
        for i, (end, low, high) in enumerate(phases):
            if s <= end or i == len(phases) - 1:
                share = (s - begin) / (end - begin)
                if linear:
                    return (high - low) * share + low
                return high + (low - high) / 2.0 * (math.cos(math.pi * share) + 1)
            begin = end
        return None
    return at


def plateau(initial, values, mode="min", factor=0.1, patience=10, threshold=1e-4, relative=True, cooldown=0, last=0.0):
    """ReduceLROnPlateau.step with eps=0; the rate after each evaluation."""
    rate, bad, wait = initial, 0, 0
    best = math.inf if mode == "min" else -math.inf
    rates = []
    for value in values:
        if mode == "min":
            better = value < (best * (1.0 - threshold) if relative else best - threshold)
        else:
            better = value > (best * (threshold + 1.0) if relative else best + threshold)
        if better:
            best, bad = value, 0
        else:
            bad += 1
        if wait > 0:
            wait -= 1
            bad = 0
        if bad > patience:
            rate = max(rate * factor, last)
            wait, bad = cooldown, 0
        rates.append(rate)
    return rates


def pytorch():
    def add(yaml, formula, steps=None):
        case("PyTorch 1.13", yaml, formula, steps or STEPS)
    add("step_decay: {initial: 0.1, decay_steps: 50, decay_rate: 0.3}", lambda s: 0.1 * 0.3 ** (s // 50))
    add("step_decay: {initial: 0.1, boundaries: [7, 100, 250]}", lambda s: 0.1 * 0.1 ** sum(b <= s for b in (7, 100, 250)))
    steps = [0, 1, 10, 28, 29, 30, 50, 75, 98, 99]
    add("one_cycle: {peak: 0.1, total_steps: 100}", one_cycle(0.1, 100, 0.1 / 25, 0.1 / 25 / 1e4), steps)
    add("one_cycle: {peak: 0.1, total_steps: 100, initial: 0.02, last: 0.001, share_up: 0.4, anneal: linear}",
        one_cycle(0.1, 100, 0.02, 0.001, 0.4, linear=True), steps)
    add("one_cycle: {peak: 0.1, total_steps: 100, three_phases: true}",
        one_cycle(0.1, 100, 0.1 / 25, 0.1 / 25 / 1e4, three=True), steps + [58, 59])
    add("one_cycle: {peak: 0.85, total_steps: 100, initial: 0.95, last: 0.95}", one_cycle(0.85, 100, 0.95, 0.95), steps)
    add("constant: {value: 0.1, warmup: {linear: {steps: 50, start_factor: 0.25, overlap: true}}}",
        lambda s: 0.1 * (0.25 + (1.0 - 0.25) * min(50, s) / 50))
    add("constant: {value: 0.1, warmup: {constant: {steps: 50, overlap: true}}}", lambda s: 0.1 * (0.1 if s < 50 else 1))


def plateaus():
    down = [5.0, 4.0, 3.5, 3.5, 3.6, 3.4999, 3.0, 3.1, 3.0, 3.2, 2.9, 2.8, 2.9, 3.0, 3.1, 3.2, 3.3, 3.4, 2.7, 2.75]
    up = [0.1, 0.3, 0.5, 0.5, 0.49, 0.5001, 0.5, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.61, 0.605]
    all_ = []
    for yaml, values, options in [
            ("factor: 0.5, patience: 1", down, {"factor": 0.5, "patience": 1}),
            ("patience: 0, cooldown: 2, last: 0.002", down, {"patience": 0, "cooldown": 2, "last": 0.002}),
            ("mode: max, patience: 1, threshold: 0.001", up, {"mode": "max", "patience": 1, "threshold": 0.001}),
            ("mode: max, factor: 0.3, patience: 2, threshold: 0.005, threshold_mode: absolute", up,
             {"mode": "max", "factor": 0.3, "patience": 2, "threshold": 0.005, "relative": False})]:
        all_.append({"yaml": "reduce_on_plateau: {initial: 0.1, %s}" % yaml, "metric": values,
                     "values": plateau(0.1, values, **options)})
    return all_


if __name__ == "__main__":
    tensorflow()
    pytorch()
    lists = {"cases": cases, "plateaus": plateaus()}
    text = ",\n".join(f'"{name}": [\n' + ",\n".join(json.dumps(case) for case in all_) + "\n]"
                      for name, all_ in lists.items())
    (pathlib.Path(__file__).parent / "schedules.json").write_text("{\n" + text + "\n}\n", encoding="utf-8")
