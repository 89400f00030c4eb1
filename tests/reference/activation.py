# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Activations: both forms of GELU, SELU's constants, and what large numbers give. Computed in float64."""
import torch
import torch.nn.functional as F
from common import differentiate, reference_file, seeded, write_case

SMALL = torch.linspace(-6.0, 6.0, 49).reshape(1, 49)
LARGE = torch.tensor([[-1e4, -200.0, -100.0, -30.0, -17.0, -9.0, -1e-6, 1e-6, 9.0, 17.0, 30.0, 100.0]])

ACTIVATIONS = {
    "leaky_relu": ("leaky_relu: {alpha: 0.3}", lambda x: F.leaky_relu(x, float(torch.tensor(0.3)))),
    "relu6": ("relu6", F.relu6),
    "elu": ("elu: {alpha: 0.5}", lambda x: F.elu(x, 0.5)),
    "selu": ("selu", F.selu),
    "gelu": ("gelu", F.gelu),
    "gelu_approximate": ("gelu: {approximate: true}", lambda x: F.gelu(x, approximate="tanh")),
    "silu": ("silu", F.silu),
    "scaled_tanh": ("tanh: {scale: 1.75, slope: 0.625}", lambda x: 1.75 * torch.tanh(0.625 * x)),
    "sigmoid": ("sigmoid", torch.sigmoid),
    "softplus": ("softplus", F.softplus),
    "log_softmax": ("log_softmax", lambda x: F.log_softmax(x, dim=-1)),
    "softmax": ("softmax", lambda x: F.softmax(x, dim=-1)),
}

with reference_file(__file__) as file:
    for name, (yaml, function) in ACTIVATIONS.items():
        for size, inputs in {"": SMALL, "_large": LARGE}.items():
            x = inputs.double().requires_grad_()
            y = function(x)
            dy = torch.tensor(seeded(1).standard_normal(y.shape, dtype="float32")).double()
            dx, _ = differentiate([y], [x], {}, [dy])
            write_case(file, name + size, yaml, inputs=[x], outputs=[y], dy=[dy], dx=dx, tolerance=1e-6)
