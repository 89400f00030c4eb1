// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/layer_table.h"

#include <algorithm>

#include "model/function_layer.h"
#include "model/layers/entries.h"

namespace lockstep {

namespace {
std::vector<LayerEntry>& entries() {
  static std::vector<LayerEntry> table = {
      // One per line.
      // clang-format off
      kDenseLayer,
      kConv2dLayer,
      kMaxPoolLayer,
      kAvgPoolLayer,
      kGlobalAvgPoolLayer,
      kConv1dLayer,
      kConv2dTransposeLayer,
      kConv3dLayer,
      kConv3dTransposeLayer,
      kGlobalMaxPoolLayer,
      kUpsampleLayer,
      kPadLayer,
      kCropLayer,
      kFlattenLayer,
      kAddLayer,
      kBatchNormLayer,
      kDropoutLayer,
      kReluLayer,
      kLeakyReluLayer,
      kRelu6Layer,
      kEluLayer,
      kGeluLayer,
      kSiluLayer,
      kTanhLayer,
      kSigmoidLayer,
      kSoftplusLayer,
      kSoftmaxLayer,
      kEmbeddingLayer,
      kLstmLayer,
      kGruLayer,
      kLastStepLayer,
      kSequenceLengthLayer,
      kMaskingLayer,
      kLayerNormLayer,
      kGroupNormLayer,
      kInstanceNormLayer,
      kL2NormalizeLayer,
      kMultiplyLayer,
      kConcatLayer,
      kSplitLayer,
      kSliceLayer,
      kReshapeLayer,
      kTransposeLayer,
      kSqueezeLayer,
      kExpandDimsLayer,
      kReduceLayer,
      kStopGradientLayer,
      kIdentityLayer,
      kConstantLayer,
      kSpatialDropoutLayer,
      kGaussianNoiseLayer,
      kSeluLayer,
      kLogSoftmaxLayer,
      kPositionalEmbeddingLayer,
      kAttentionLayer,
      kNceLayer,
      kSampledSoftmaxLayer,
      kNegativeSamplingLayer,
      // clang-format on
  };
  return table;
}
}  // namespace

std::unique_ptr<Layer> LayerEntry::create(std::string layer_name, const Params& params) const {
  return function != nullptr ? make_function_layer(std::move(layer_name), *function)
                             : make(std::move(layer_name), params);
}

std::span<const LayerEntry> layer_table() { return entries(); }

void register_layer(const LayerEntry& entry) {
  LOCKSTEP_REQUIRE(std::none_of(entries().begin(), entries().end(),
                                [&](const LayerEntry& other) { return other.name == entry.name; }),
                   ErrorKind::config, "a layer named '{}' exists already", entry.name);
  entries().push_back(entry);
}

}  // namespace lockstep
