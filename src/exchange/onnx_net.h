// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A trained net as its export needs it: layers as data, in the order of the graph, and the values of their
// variables. Local; one process.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "config/params.h"
#include "core/named_shape.h"
#include "exchange/foreign_tensor.h"

namespace lockstep {

struct OnnxLayer {
  std::string name, kind;
  std::string owner;  ///< the layer whose variables it uses: its own name, or that of shared_with
  Params options;
  std::vector<std::string> inputs;  ///< values: "conv1", "split1:1"
  std::vector<Shape> in, out;       ///< of one sample
};

struct OnnxNet {
  std::vector<NamedShape> inputs;
  std::vector<OnnxLayer> layers;
  std::vector<std::string> outputs;                ///< values
  std::map<std::string, ForeignTensor> variables;  ///< float32, by name

  /// The value "layer" or "layer:1" of a layer's output.
  static std::string value_of(const std::string& layer, int output);
};

/// Puts each batch_norm that follows a dense layer or a convolution alone into its kernel and bias, in
/// double. Returns the names of the batch norms, which are identities afterwards.
std::vector<std::string> fold_batch_norms(OnnxNet& net);

/// The net in the format ONNX, with a batch of any size. Throws Error(config) that names a layer that ONNX
/// cannot express.
std::string onnx_file(const OnnxNet& net, std::span<const std::pair<std::string, std::string>> metadata);

}  // namespace lockstep
