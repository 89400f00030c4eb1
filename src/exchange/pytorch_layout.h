// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Names and layouts of PyTorch for the variables of a layer, both ways. Lockstep's kernels are channels last:
// dense in x out, convolutions window x in x out; PyTorch has out x in and out x in x window. Activations of
// Lockstep are channels last too, so the rows of a dense layer after a flatten of C x H x W are in another
// order there (docs/export.md).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exchange/foreign_tensor.h"

namespace lockstep {

/// The kind of each layer of a model, by the name of the layer.
struct LayerKind {
  std::string name;
  std::string kind;
};

/// A variable ("conv1/kernel") as PyTorch has it ("conv1.weight"). Throws Error(config) that names the layer
/// if its kind has no such form.
ForeignTensor to_pytorch(const ForeignTensor& variable, std::span<const LayerKind> layers);

/// All tensors of a state dict as variables of Lockstep, by names alone: a weight with a running_mean next to
/// it is gamma, another weight of one axis too (layer_norm), one of two axes is a dense kernel, one of more
/// axes that of a convolution. num_batches_tracked is left out.
std::vector<ImportedTensor> from_pytorch(std::span<const ForeignTensor> tensors);

}  // namespace lockstep
