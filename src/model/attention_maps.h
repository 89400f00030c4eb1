// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A base, in addition to Layer, of layers whose attention can be shown: after forward() in training they give
// the queries and keys of the microshard.
#pragma once

#include "kernels/attention.h"
#include "model/layer.h"

namespace lockstep {

class AttentionMaps {
 public:
  virtual ~AttentionMaps() = default;
  struct View {
    AttentionShape shape;
    AttentionInputs inputs;  ///< on the device, valid until the microshard's backward pass
  };
  virtual View attention_view(const Pass& pass) const = 0;
};

}  // namespace lockstep
