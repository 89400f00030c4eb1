// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The weights of an ONNX file: the initialisers of its graph. What a tensor is for, and how it lies in
// memory, is what the operator says that reads it: the second input of Conv is out x in x window, that of
// Gemm is transposed if transB is set, those of BatchNormalization are scale, shift, mean and variance.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "exchange/foreign_tensor.h"

namespace lockstep {

/// The tensors of floating-point numbers that operators with weights read, with names and layouts of
/// Lockstep: "conv1/kernel" for "conv1.weight". Others (shapes, constants) are left out. Throws Error(data)
/// for a file that is damaged, that keeps its tensors in other files, or whose objects would take more memory
/// than an InputBudget allows.
std::vector<ImportedTensor> read_onnx_initializers(const std::string& path);
/// Reads the contents of a file; `path` is for messages.
std::vector<ImportedTensor> onnx_initializers_from(std::string_view contents, const std::string& path);

}  // namespace lockstep
