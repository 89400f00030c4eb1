// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What section data of a configuration makes of the values of each input, as steps of an exported net. Steps
// that depend on the place of a value (crops, other sizes) are not among those that can be written.
#pragma once

#include <vector>

#include "exchange/onnx_net.h"

namespace lockstep {

class Dataset;
struct DataOptions;

/// Of each input of `trained`, whose numbers are known, as prediction does it: with the fixed form of the
/// transforms of the evaluation set. Throws Error(config) that names a transform that cannot be written, or
/// an input that is a sequence.
std::vector<OnnxInput> onnx_inputs(const DataOptions& data, const Dataset& trained);

}  // namespace lockstep
