// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The entries of Lockstep's own layers, each defined in its layer's file; layer_table.cpp lists them.
#pragma once

#include "model/layer_table.h"

namespace lockstep {

extern const LayerEntry kDenseLayer, kConv2dLayer, kMaxPoolLayer, kAvgPoolLayer, kGlobalAvgPoolLayer,
    kFlattenLayer, kAddLayer, kBatchNormLayer, kDropoutLayer, kReluLayer, kLeakyReluLayer, kRelu6Layer,
    kEluLayer, kGeluLayer, kSiluLayer, kTanhLayer, kSigmoidLayer, kSoftplusLayer, kSoftmaxLayer;

}  // namespace lockstep
