// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The names of convolutions and products in messages and in lists of algorithms.
#include <fmt/ranges.h>

#include "core/error.h"
#include "kernels/cublaslt_cuda.h"
#include "kernels/cudnn_cuda.h"

namespace lockstep::cuda {

std::string PlanSpec::describe() const {
  const char* name = pass == Pass::forward         ? "forward"
                     : pass == Pass::backward_data ? "gradient of the input"
                                                   : "gradient of the weights";
  const auto text = [&](const Axes& all) {
    return fmt::format("{}", fmt::join(all.end() - spatial_axes, all.end(), "x"));
  };
  return fmt::format(
      "a {} convolution of {}x{}x{} to {}x{} ({}) in {}, padding {}, stride {}, dilation {}, {} group(s){}",
      text(kernel), n, text(in), in_c, text(out), out_c, name, name_of(type),
      padding == padding_after ? text(padding)
                               : text(padding) + " before and " + text(padding_after) + " after",
      text(stride), text(dilation), groups, tf32 ? ", TF32" : "");
}

std::string ProductShape::describe() const {
  return fmt::format("a {} product of {} x {} x {}{}{}{}{}{}{}", name_of(from), m, n, k,
                     to != from ? fmt::format(" in {}", name_of(to)) : "",
                     transposed_a ? ", a transposed" : "", transposed_b ? ", b transposed" : "",
                     bias ? ", bias" : "", tf32 ? ", TF32" : "",
                     alignment != kProductAlignment ? fmt::format(", aligned to {} bytes", alignment) : "");
}

}  // namespace lockstep::cuda
