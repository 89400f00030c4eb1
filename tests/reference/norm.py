# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Normalisation: where the epsilon is, which variance is kept, what is normalised together."""
import torch
import torch.nn.functional as F
from common import differentiate, reference_file, seeded, write_case


def numbers(seed, *shape):
    """A leaf in double whose values are exact in float32, so that what is written is what was computed with."""
    values = seeded(seed).standard_normal(shape, dtype="float32") * 1.5 + 0.5
    return torch.tensor(values).double().requires_grad_()


def case(file, name, yaml, x, function, gamma=None, beta=None, state=None, **options):
    """function(x) with the leaves gamma and beta; `state` is filled by it."""
    y = function(x)
    dy = torch.tensor(seeded(99).standard_normal(y.shape, dtype="float32")).double()
    variables = {key: value for key, value in {"gamma": gamma, "beta": beta}.items() if value is not None}
    dx, gradients = differentiate([y], [x], variables, [dy])
    write_case(file, name, yaml, inputs=[x], outputs=[y], dy=[dy], dx=dx, variables=variables, gradients=gradients,
               state=state, **options)


def channels_first(x):
    return x.movedim(-1, 1)


def channels_last(x):
    return x.movedim(1, -1)


with reference_file(__file__) as file:
    gamma, beta = numbers(1, 5), numbers(2, 5)
    case(file, "layer_norm", "layer_norm", numbers(3, 4, 3, 5), lambda x: F.layer_norm(x, (5,), gamma, beta, 1e-5),
         gamma, beta, microshards=[3, 1])
    case(file, "layer_norm_epsilon", "layer_norm: {epsilon: 0.3}", numbers(4, 2, 5),
         lambda x: F.layer_norm(x, (5,), gamma, beta, 0.3), gamma, beta)
    wide_gamma, wide_beta = numbers(5, 3, 5), numbers(6, 3, 5)
    case(file, "layer_norm_whole_sample", "layer_norm: {axis: 0}", numbers(7, 3, 3, 5),
         lambda x: F.layer_norm(x, (3, 5), wide_gamma, wide_beta, 1e-5), wide_gamma, wide_beta)

    # torch.nn.functional.rms_norm, which PyTorch has from 2.4 on.
    def rms_norm(x, axes, weight, eps):
        return x * torch.rsqrt(x.pow(2).mean(axes, keepdim=True) + eps) * weight

    case(file, "rms_norm", "rms_norm", numbers(17, 4, 3, 5), lambda x: rms_norm(x, (-1,), gamma, 1e-6), gamma,
         microshards=[3, 1])
    case(file, "rms_norm_epsilon", "rms_norm: {epsilon: 0.3}", numbers(18, 2, 5),
         lambda x: rms_norm(x, (-1,), gamma, 0.3), gamma)
    case(file, "rms_norm_whole_sample", "rms_norm: {axis: 0}", numbers(19, 3, 3, 5),
         lambda x: rms_norm(x, (-2, -1), wide_gamma, 1e-6), wide_gamma)

    gamma, beta = numbers(8, 6), numbers(9, 6)
    case(file, "group_norm", "group_norm: {groups: 3}", numbers(10, 3, 4, 3, 6),
         lambda x: channels_last(F.group_norm(channels_first(x), 3, gamma, beta, 1e-5)), gamma, beta, microshards=[1, 2])
    case(file, "instance_norm", "instance_norm", numbers(11, 3, 4, 3, 6),
         lambda x: channels_last(F.instance_norm(channels_first(x), weight=gamma, bias=beta, eps=1e-5)), gamma, beta)

    # The running variance is the unbiased one; normalised is with the biased one. Its momentum counts the other way.
    for rank, shape in {1: (6, 5, 6), 2: (6, 2, 3, 6), 3: (6, 2, 1, 3, 6)}.items():
        mean, variance = torch.zeros(6).double(), torch.ones(6).double()
        case(file, f"batch_norm_{rank}d", "batch_norm: {momentum: 0.9, epsilon: 0.01}", numbers(12, *shape),
             lambda x: channels_last(F.batch_norm(channels_first(x), mean, variance, gamma, beta, training=True,
                                                  momentum=0.1, eps=0.01)),
             gamma, beta, state={"moving_mean": mean, "moving_variance": variance}, microshards=[2, 1, 3])
    x = numbers(13, 3, 4, 6)
    mean, variance = numbers(14, 6).detach(), numbers(15, 6).detach().abs() + 0.1
    y = channels_last(F.batch_norm(channels_first(x), mean, variance, gamma, beta, training=False, eps=0.01))
    write_case(file, "batch_norm_inference", "batch_norm: {epsilon: 0.01}", inputs=[x], outputs=[y],
               variables={"gamma": gamma, "beta": beta, "moving_mean": mean, "moving_variance": variance})

    x = numbers(16, 3, 2, 7)
    with torch.no_grad():
        x[0, 0] *= 1e-8  # the sum of squares is below epsilon: max(sum, epsilon), not sum + epsilon
    case(file, "l2_normalize", "l2_normalize: {epsilon: 1e-6}", x, lambda x: F.normalize(x, dim=-1, eps=1e-3))
