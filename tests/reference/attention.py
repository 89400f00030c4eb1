# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Attention: how heads lie in the projections, which way the causal mask goes, what a key padding mask leaves; and the
padding row of an embedding. PyTorch's projections are out x in, with q, k and v below each other; ours in x out, side by
side. Rows of a sequence past its length are zero here, so PyTorch's are set to zero."""
import torch
from common import differentiate, reference_file, seeded, write_case
from torch import nn


def leaf(seed, *shape):
    """In double, with values that are exact in float32."""
    return torch.tensor(seeded(seed).standard_normal(shape, dtype="float32")).double().requires_grad_()


def attention_case(file, name, units, heads, steps, lengths=None, causal=False, memory=None, samples=3, microshards=(2, 1)):
    """memory: (steps, features) of the sequence that is attended to."""
    seed = 10 * len(file)
    keys, features = memory or (steps, units)
    x = leaf(seed, samples, steps, units)
    source = leaf(seed + 1, samples, keys, features) if memory else x
    output_kernel, output_bias = leaf(seed + 2, units, units), leaf(seed + 3, units)
    if memory:
        names = {"query_kernel": leaf(seed + 4, units, units), "query_bias": leaf(seed + 5, units),
                 "memory_kernel": leaf(seed + 6, features, 2 * units), "memory_bias": leaf(seed + 7, 2 * units)}
        kernel_k, kernel_v = names["memory_kernel"].split(units, dim=1)
        weights = {"q_proj_weight": names["query_kernel"].t(), "k_proj_weight": kernel_k.t(), "v_proj_weight": kernel_v.t(),
                   "in_proj_weight": None, "in_proj_bias": torch.cat([names["query_bias"], names["memory_bias"]])}
    else:
        names = {"qkv_kernel": leaf(seed + 4, units, 3 * units), "qkv_bias": leaf(seed + 5, 3 * units)}
        weights = {"in_proj_weight": names["qkv_kernel"].t(), "in_proj_bias": names["qkv_bias"]}
    names |= {"output_kernel": output_kernel, "output_bias": output_bias}

    counts = torch.tensor(lengths or [keys] * samples)
    past = torch.arange(keys)[None, :] >= counts[:, None]
    mask = torch.triu(torch.ones(steps, keys, dtype=torch.bool), 1) if causal else None
    y, _ = nn.functional.multi_head_attention_forward(
        x.transpose(0, 1), source.transpose(0, 1), source.transpose(0, 1), units, heads, weights["in_proj_weight"],
        weights["in_proj_bias"], None, None, False, 0.0, output_kernel.t(), output_bias, training=True,
        key_padding_mask=past if lengths else None, need_weights=True, attn_mask=mask,
        use_separate_proj_weight=memory is not None, q_proj_weight=weights.get("q_proj_weight"),
        k_proj_weight=weights.get("k_proj_weight"), v_proj_weight=weights.get("v_proj_weight"))
    y = y.transpose(0, 1)
    if lengths and not memory:
        y = y * ~past[:, :, None]

    inputs = [x, source] if memory else [x]
    dy = leaf(seed + 8, *y.shape).detach()
    dx, gradients = differentiate([y], inputs, names, [dy])
    if lengths:
        inputs, dx = [*inputs, counts[:, None].double()], [*dx, None]
    yaml = f"attention: {{units: {units}, heads: {heads}, causal: {str(causal).lower()}}}"
    write_case(file, name, yaml, inputs, [y], [dy], dx, names, gradients, microshards=microshards)


def embedding_case(file, name, rows, units, padding):
    seed = 10 * len(file)
    ids = torch.tensor(seeded(seed).integers(0, rows, (3, 7)))
    table = leaf(seed + 1, rows, units)
    zeroed = table.detach().clone()
    zeroed[padding] = 0  # PyTorch gives the row as it is, and begins with zeros there
    zeroed.requires_grad_()
    y = nn.functional.embedding(ids, zeroed, padding_idx=padding)
    dy = leaf(seed + 2, *y.shape).detach()
    _, gradients = differentiate([y], [], {"embeddings": zeroed}, [dy])
    write_case(file, name, f"embedding: {{rows: {rows}, units: {units}, padding_index: {padding}}}", [ids.double()], [y],
               [dy], [None], {"embeddings": table}, gradients, microshards=(2, 1))


if __name__ == "__main__":
    with reference_file(__file__) as file:
        attention_case(file, "attention", 6, 2, 5)
        attention_case(file, "attention_causal", 6, 3, 9, causal=True)
        attention_case(file, "attention_lengths", 4, 2, 5, lengths=[3, 5, 1])
        attention_case(file, "attention_causal_lengths", 4, 1, 17, lengths=[16, 2, 17], causal=True)
        attention_case(file, "attention_memory", 6, 2, 3, memory=(7, 5))
        attention_case(file, "attention_memory_lengths", 6, 3, 5, memory=(4, 3), lengths=[4, 1, 2])
        embedding_case(file, "embedding_padding", 5, 3, 2)
