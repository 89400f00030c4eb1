// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The convolution whose float32 gradient of the weights cuDNN 9.19 computed wrongly on an H100: kernel 3 x 3,
// stride 2, padded like "same", so that the padding before and after one axis differs.
#pragma once

#include "kernels/cudnn_cuda.h"

namespace lockstep {

inline cuda::PlanSpec unevenly_padded(cuda::PlanSpec::Pass pass, std::int64_t samples,
                                      std::int64_t channels) {
  return {.pass = pass,
          .n = samples,
          .in_c = channels,
          .out_c = 6,
          .in = {1, 5, 6},
          .out = {1, 3, 3},
          .kernel = {1, 3, 3},
          .padding = {0, 1, 0},
          .padding_after = {0, 1, 1},
          .stride = {1, 2, 2}};
}

}  // namespace lockstep
