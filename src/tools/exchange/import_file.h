// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The file of another program that `lockstep import` reads: which format it has, and how its tensors lie.
#pragma once

#include <string>
#include <vector>

#include "exchange/foreign_tensor.h"

namespace lockstep {

struct ImportFile {
  std::vector<ImportedTensor> tensors;
  std::vector<std::string> notes;     ///< what a person should know of how it was read; one line each
  std::vector<std::string> followed;  ///< other files, which values come from
  bool by_order = false;              ///< its names number the layers of a class (Keras)
};

/// `layout`: "lockstep", "pytorch", or empty for what the file says: a state dict is PyTorch's, safetensors
/// have it in their metadata or in their names. Throws Error(usage) for a layout that contradicts the file,
/// and for Lockstep's own files; Error(data), also for a file without tensors, and for two of one name. With
/// `follow_external`, values may come from files outside of the folder of `path`; the notes name all others.
ImportFile read_import_file(const std::string& path, const std::string& layout, bool follow_external);

}  // namespace lockstep
