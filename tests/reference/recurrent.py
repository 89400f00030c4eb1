# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers: the order of the gates, what stands where in the kernels, directions, lengths, and where GRU's reset
gate multiplies. PyTorch's LSTM and GRU, and for `reset_after: false`, which PyTorch has not, the equations themselves.
to_ours_lstm() and to_ours_gru() are how weights of PyTorch are brought here."""
import torch
from common import reference_file, seeded, write_case
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def tensor(random, shape):
    """Exact in float32, so that what is written is what was computed with."""
    return torch.tensor(random.standard_normal(shape, dtype="float32")).double()


def gates_of(matrix, count):
    """PyTorch's gates x in, transposed and cut into gates of in x units; of a bias: of units."""
    return torch.chunk(matrix.t() if matrix.dim() == 2 else matrix, count, dim=-1)


def both(x_part, h_part):
    """Kernels: x's rows above h's."""
    return torch.cat([x_part, h_part], dim=0)


def to_ours_lstm(weights, suffix, sum_biases=True):
    """From PyTorch's names: gates i, f, g, o there; i, j (its g), f, o here. Gradients: both biases have the same."""
    def reorder(matrix):
        i, f, g, o = gates_of(matrix, 4)
        return torch.cat([i, g, f, o], dim=-1)
    bias = reorder(weights["bias_ih"])
    return {f"kernel{suffix}": both(reorder(weights["weight_ih"]), reorder(weights["weight_hh"])),
            f"bias{suffix}": bias + reorder(weights["bias_hh"]) if sum_biases else bias}


def to_ours_gru(weights, suffix, sum_biases=True):
    """PyTorch's r, z, n: r and u share a kernel here, n has its own, and a bias of its own behind r."""
    def gates(matrix):
        return torch.cat(gates_of(matrix, 3)[:2], dim=-1)
    def candidate(matrix):
        return gates_of(matrix, 3)[2]
    bias = gates(weights["bias_ih"])
    return {f"gates_kernel{suffix}": both(gates(weights["weight_ih"]), gates(weights["weight_hh"])),
            f"gates_bias{suffix}": bias + gates(weights["bias_hh"]) if sum_biases else bias,
            f"candidate_kernel{suffix}": both(candidate(weights["weight_ih"]), candidate(weights["weight_hh"])),
            f"candidate_bias{suffix}": candidate(weights["bias_ih"]),
            f"candidate_recurrent_bias{suffix}": candidate(weights["bias_hh"])}


def converted(module, convert, gradients):
    """All of a module's weights, or their gradients, in our names."""
    ours = {}
    for layer in range(module.num_layers):
        for direction in (["", "_reverse"] if module.bidirectional else [""]):
            names = ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]
            parameters = {name: getattr(module, f"{name}_l{layer}{direction}") for name in names}
            values = {name: p.grad if gradients else p.detach() for name, p in parameters.items()}
            ours.update(convert(values, f"_{layer}{direction}", sum_biases=not gradients))
    return ours


def module_case(file, name, yaml, module, convert, steps, features, lengths=None, samples=3, microshards=(2, 1)):
    random = seeded(len(file) + 1)
    module = module.double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(tensor(random, tuple(parameter.shape)))
        for key, parameter in module.named_parameters():
            if key.startswith("bias_hh") and convert is to_ours_lstm:
                parameter.zero_()  # the sum of two float32 numbers need not be one
            if key.startswith("bias_hh") and convert is to_ours_gru:
                parameter[:2 * module.hidden_size] = 0
    x = tensor(random, (samples, steps, features)).requires_grad_()
    if lengths is None:
        y, states = module(x)
    else:
        packed, states = module(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
        y, _ = pad_packed_sequence(packed, batch_first=True, total_length=steps)
    states = states if isinstance(states, tuple) else (states,)
    directions = 2 if module.bidirectional else 1
    outputs = [y] + [torch.cat(list(state[-directions:]), dim=-1) for state in states]
    dy = [tensor(random, tuple(output.shape)) for output in outputs]
    torch.autograd.backward(outputs, dy)
    inputs, dx = [x], [x.grad]
    if lengths is not None:
        inputs.append(torch.tensor(lengths).view(samples, 1))
        dx.append(None)
    write_case(file, name, yaml, inputs, outputs, dy, dx, converted(module, convert, False),
               converted(module, convert, True), microshards=microshards)


def gru_equations_case(file, name, units, steps, features, samples=3, microshards=(1, 2)):
    """Cho et al. 2014, with u for what is kept: r stands before the product."""
    random = seeded(len(file) + 1)
    variables = {"gates_kernel_0": tensor(random, (features + units, 2 * units)),
                 "gates_bias_0": tensor(random, (2 * units,)),
                 "candidate_kernel_0": tensor(random, (features + units, units)),
                 "candidate_bias_0": tensor(random, (units,))}
    x = tensor(random, (samples, steps, features))
    for leaf in [x, *variables.values()]:
        leaf.requires_grad_()
    h, sequence = torch.zeros(samples, units, dtype=torch.float64), []
    for t in range(steps):
        gates = torch.sigmoid(torch.cat([x[:, t], h], 1) @ variables["gates_kernel_0"] + variables["gates_bias_0"])
        r, u = torch.chunk(gates, 2, dim=1)
        candidate = torch.tanh(torch.cat([x[:, t], r * h], 1) @ variables["candidate_kernel_0"]
                               + variables["candidate_bias_0"])
        h = u * h + (1 - u) * candidate
        sequence.append(h)
    outputs = [torch.stack(sequence, 1), h]
    dy = [tensor(random, tuple(output.shape)) for output in outputs]
    torch.autograd.backward(outputs, dy)
    write_case(file, name, f"gru: {{units: {units}}}", [x], outputs, dy, [x.grad], variables,
               {key: value.grad for key, value in variables.items()}, microshards=microshards)


def main():
    with reference_file(__file__) as file:
        module_case(file, "lstm", "lstm: {units: 4, forget_bias: 0}", nn.LSTM(3, 4, batch_first=True), to_ours_lstm, 5, 3)
        module_case(file, "lstm_two_layers", "lstm: {units: 3, layers: 2, forget_bias: 0}",
                    nn.LSTM(2, 3, 2, batch_first=True), to_ours_lstm, 4, 2)
        module_case(file, "lstm_bidirectional_two_layers_lengths",
                    "lstm: {units: 3, layers: 2, bidirectional: true, forget_bias: 0}",
                    nn.LSTM(2, 3, 2, batch_first=True, bidirectional=True), to_ours_lstm, 5, 2, lengths=[3, 5, 1])
        module_case(file, "gru_reset_after", "gru: {units: 4, reset_after: true}", nn.GRU(3, 4, batch_first=True),
                    to_ours_gru, 5, 3)
        module_case(file, "gru_reset_after_bidirectional_lengths",
                    "gru: {units: 3, reset_after: true, bidirectional: true}",
                    nn.GRU(2, 3, batch_first=True, bidirectional=True), to_ours_gru, 4, 2, lengths=[4, 1, 2])
        gru_equations_case(file, "gru", 4, 5, 3)


if __name__ == "__main__":
    main()
