// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/setup/loss_scale.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/scalar.h"

namespace lockstep {

DType activation_type(const Config& config) {
  const std::string& compute = config.precision.string("compute");
  if (compute == "float32") return DType::f32;
  if (compute == "bfloat16") return DType::bf16;
  if (compute == "float16") return DType::f16;
  throw config.precision.error("compute", fmt::format("'{}' is not a type of activations", compute),
                               "Use float32, bfloat16 or float16.");
}

void LossScaleState::finite(const LossScale& options) {
  good_steps += 1;
  if (good_steps < static_cast<double>(options.growth_steps)) return;
  scale = std::min(2 * scale, LossScale::kMost);
  good_steps = 0;
}

bool LossScaleState::overflowed() {
  good_steps = 0;
  if (scale <= 1) return false;
  scale /= 2;
  return true;
}

LossScale loss_scale(const Config& config) {
  const std::string& text = config.precision.node("loss_scale").text;  // of a list or a map: empty
  LossScale scale;
  scale.growth_steps = config.precision.integer("loss_scale_growth_steps");
  if (text == "dynamic" || (text == "auto" && activation_type(config) == DType::f16)) {
    scale.dynamic = true;
    scale.initial = LossScale::kDynamicInitial;
  } else if (text != "auto") {
    const auto number = parse_real(text);
    int exponent = 0;
    if (!number || !(*number >= 1) || *number > LossScale::kMost || std::frexp(*number, &exponent) != 0.5)
      throw config.precision.error(
          "loss_scale", fmt::format("'{}' is no loss scale", text),
          "Use auto, dynamic, or a power of two of at least 1, such as 1024 (any other would change bits).");
    scale.initial = *number;
  }
  return scale;
}

}  // namespace lockstep
