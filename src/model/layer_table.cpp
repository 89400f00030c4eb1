// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/layer_table.h"

#include "model/function_layer.h"

namespace lockstep {

// Lockstep's own layers, one per line. Each entry is defined in its layer's file in layers/.
#define LOCKSTEP_LAYERS(LAYER)     \
  LAYER(kDenseLayer)               \
  LAYER(kConv2dLayer)              \
  LAYER(kMaxPoolLayer)             \
  LAYER(kAvgPoolLayer)             \
  LAYER(kGlobalAvgPoolLayer)       \
  LAYER(kConv1dLayer)              \
  LAYER(kConv2dTransposeLayer)     \
  LAYER(kConv3dLayer)              \
  LAYER(kConv3dTransposeLayer)     \
  LAYER(kGlobalMaxPoolLayer)       \
  LAYER(kUpsampleLayer)            \
  LAYER(kPadLayer)                 \
  LAYER(kCropLayer)                \
  LAYER(kFlattenLayer)             \
  LAYER(kAddLayer)                 \
  LAYER(kBatchNormLayer)           \
  LAYER(kDropoutLayer)             \
  LAYER(kReluLayer)                \
  LAYER(kLeakyReluLayer)           \
  LAYER(kRelu6Layer)               \
  LAYER(kEluLayer)                 \
  LAYER(kGeluLayer)                \
  LAYER(kSiluLayer)                \
  LAYER(kTanhLayer)                \
  LAYER(kSigmoidLayer)             \
  LAYER(kSoftplusLayer)            \
  LAYER(kSoftmaxLayer)             \
  LAYER(kEmbeddingLayer)           \
  LAYER(kTiedDenseLayer)           \
  LAYER(kLstmLayer)                \
  LAYER(kGruLayer)                 \
  LAYER(kLastStepLayer)            \
  LAYER(kSequenceLengthLayer)      \
  LAYER(kMaskingLayer)             \
  LAYER(kLayerNormLayer)           \
  LAYER(kRmsNormLayer)             \
  LAYER(kGroupNormLayer)           \
  LAYER(kInstanceNormLayer)        \
  LAYER(kL2NormalizeLayer)         \
  LAYER(kMultiplyLayer)            \
  LAYER(kConcatLayer)              \
  LAYER(kSplitLayer)               \
  LAYER(kSliceLayer)               \
  LAYER(kReshapeLayer)             \
  LAYER(kTransposeLayer)           \
  LAYER(kSqueezeLayer)             \
  LAYER(kExpandDimsLayer)          \
  LAYER(kReduceLayer)              \
  LAYER(kStopGradientLayer)        \
  LAYER(kIdentityLayer)            \
  LAYER(kConstantLayer)            \
  LAYER(kSpatialDropoutLayer)      \
  LAYER(kDropPathLayer)            \
  LAYER(kGaussianNoiseLayer)       \
  LAYER(kSeluLayer)                \
  LAYER(kLogSoftmaxLayer)          \
  LAYER(kPositionalEmbeddingLayer) \
  LAYER(kAttentionLayer)           \
  LAYER(kNceLayer)                 \
  LAYER(kSampledSoftmaxLayer)      \
  LAYER(kNegativeSamplingLayer)

LOCKSTEP_TABLE(LayerEntry, layer_table, "layer", LOCKSTEP_LAYERS)

std::unique_ptr<Layer> LayerEntry::create(std::string layer_name, const Params& params) const {
  return function != nullptr ? make_function_layer(std::move(layer_name), *function)
                             : make(std::move(layer_name), params);
}

}  // namespace lockstep
