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

/// What becomes of the values of an input before the layers read it. Lists have one value, one for each
/// channel, or one for each value of a sample.
struct OnnxStep {
  enum class Kind {
    scale,        ///< x * first + second
    normalize,    ///< (x - first) / second
    clip,         ///< from first to second
    log,          ///< of max(x, 0) + first
    standardize,  ///< of a sample: see the transform standardize
    whiten        ///< second * (x - first): a matrix with a row per component
  };
  Kind kind = Kind::scale;
  std::vector<float> first = {}, second = {};
  bool over_channels = false;  ///< whiten: the channels of a pixel are the vector
  Shape out = {};              ///< of one sample after it
};

/// An input as a program gives it.
struct OnnxInput {
  Shape shape;  ///< of one sample before the steps, channels last
  std::vector<OnnxStep> steps = {};
};

struct OnnxNet {
  std::vector<NamedShape> inputs;
  std::vector<OnnxInput> prepared = {};  ///< of each of them; empty: they are given as the layers read them
  bool inputs_channels_first = false;    ///< samples with two axes or more are given as C, D, H, W
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
