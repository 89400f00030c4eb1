// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Weights of Keras 3 (`model.save_weights("x.weights.h5")`), both ways: a group for each layer, named for its
// class and its number among the layers of that class (layers/dense, layers/dense_1), and in it vars/0,
// vars/1, ... in the order in which the layer makes its variables. Layouts of kernels are those of Lockstep.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "exchange/foreign_tensor.h"
#include "exchange/pytorch_layout.h"
#include "io/followed_files.h"

namespace lockstep {

/// True for the ending of such a file.
bool is_keras_file(const std::string& path);

/// All arrays of a file of weights, in the order of the layers of a class (read_hdf5_arrays()). HDF5 can
/// crash on a damaged file: a child process reads it first, up to 64 MiB of its values. Throws Error(data),
/// also for such a file. One thread, without MPI.
ForeignFile read_keras_weights(const std::string& path, FollowedFiles& followed);

/// The tensors with names of Lockstep: dense_1/kernel, batch_normalization/gamma. What is no variable of a
/// layer (an optimizer, seeds) is left out. A variable of a layer of another class keeps its number
/// (lstm/cell/0).
std::vector<ImportedTensor> from_keras(std::span<const ForeignTensor> tensors);

/// The variables with Keras's names. `layers` in the order of the model. Throws Error(config) that names the
/// layer if its kind has no such form.
std::vector<ForeignTensor> to_keras(std::span<const ForeignTensor> variables,
                                    std::span<const LayerKind> layers);

/// Into an empty file that is open for reading and writing. Throws Error(output).
void write_keras_weights(int descriptor, const std::string& path, std::span<const ForeignTensor> tensors);

}  // namespace lockstep
