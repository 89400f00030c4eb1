// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The entries of Lockstep's own layers, each defined in its layer's file; layer_table.cpp lists them.
#pragma once

#include "model/layer_table.h"

namespace lockstep {

extern const LayerEntry kDenseLayer;
extern const LayerEntry kConv2dLayer;
extern const LayerEntry kMaxPoolLayer;
extern const LayerEntry kAvgPoolLayer;
extern const LayerEntry kGlobalAvgPoolLayer;
extern const LayerEntry kFlattenLayer;
extern const LayerEntry kAddLayer;
extern const LayerEntry kBatchNormLayer;
extern const LayerEntry kDropoutLayer;
extern const LayerEntry kReluLayer;
extern const LayerEntry kLeakyReluLayer;
extern const LayerEntry kRelu6Layer;
extern const LayerEntry kEluLayer;
extern const LayerEntry kGeluLayer;
extern const LayerEntry kSiluLayer;
extern const LayerEntry kTanhLayer;
extern const LayerEntry kSigmoidLayer;
extern const LayerEntry kSoftplusLayer;
extern const LayerEntry kSoftmaxLayer;
extern const LayerEntry kLstmLayer;
extern const LayerEntry kGruLayer;
extern const LayerEntry kLastStepLayer;
extern const LayerEntry kSequenceLengthLayer;
extern const LayerEntry kMaskingLayer;
extern const LayerEntry kLayerNormLayer;
extern const LayerEntry kGroupNormLayer;
extern const LayerEntry kInstanceNormLayer;
extern const LayerEntry kL2NormalizeLayer;
extern const LayerEntry kMultiplyLayer;
extern const LayerEntry kConcatLayer;
extern const LayerEntry kSplitLayer;
extern const LayerEntry kSliceLayer;
extern const LayerEntry kReshapeLayer;
extern const LayerEntry kTransposeLayer;
extern const LayerEntry kSqueezeLayer;
extern const LayerEntry kExpandDimsLayer;
extern const LayerEntry kReduceLayer;
extern const LayerEntry kStopGradientLayer;
extern const LayerEntry kIdentityLayer;
extern const LayerEntry kConstantLayer;
extern const LayerEntry kSpatialDropoutLayer;
extern const LayerEntry kGaussianNoiseLayer;
extern const LayerEntry kSeluLayer;
extern const LayerEntry kLogSoftmaxLayer;
extern const LayerEntry kEmbeddingLayer;

}  // namespace lockstep
