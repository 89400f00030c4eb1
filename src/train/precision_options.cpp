// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/precision_options.h"

#include <cmath>

#include "core/scalar.h"

namespace lockstep {

namespace {

using enum ParamType;

constexpr ParamSpec kTable[] = {
    {"compute", string, "float32", one_of("float32|bfloat16|float16"),
     "Type of activations and their gradients. Variables, their gradients, statistics and losses are "
     "always float32."},
    {"loss_scale", node, "auto", in_words("auto|dynamic|a power of two"),
     "Factor of the loss before the backward pass; the summed gradients are divided by it. auto: dynamic "
     "for float16, else 1. dynamic: starts at 65536, is halved where gradients overflow (the update of "
     "that step is omitted), and doubled after loss_scale_growth_steps steps without overflow."},
    {"loss_scale_growth_steps", integer, "2000", between(1, 1e12), "See loss_scale."},
    {"allow_tf32",
     boolean,
     "false",
     {},
     "On a GPU: matrix products and convolutions may round their factors to 10 bits of mantissa (TF32), "
     "which is faster."},
};

DType activation_type(const Params& section) {
  const std::string& compute = section.string("compute");
  return compute == "bfloat16" ? DType::bf16 : compute == "float16" ? DType::f16 : DType::f32;
}

LossScale loss_scale(const Params& section, DType compute) {
  const std::string& text = section.node("loss_scale").text;  // of a list or a map: empty
  LossScale scale;
  scale.growth_steps = section.integer("loss_scale_growth_steps");
  if (text == "dynamic" || (text == "auto" && compute == DType::f16)) {
    scale.dynamic = true;
    scale.initial = LossScale::kDynamicInitial;
  } else if (text != "auto") {
    const auto number = parse_real(text);
    int exponent = 0;
    if (!number || !(*number >= 1) || *number > LossScale::kMost || std::frexp(*number, &exponent) != 0.5)
      throw section.error(
          "loss_scale", fmt::format("'{}' is no loss scale", text),
          "Use auto, dynamic, or a power of two of at least 1, such as 1024 (any other would change bits).");
    scale.initial = *number;
  }
  return scale;
}

}  // namespace

std::span<const ParamSpec> precision_table() { return kTable; }

PrecisionOptions precision_options(const Params& section) {
  const DType compute = activation_type(section);
  return {compute, loss_scale(section, compute), section.boolean("allow_tf32")};
}

}  // namespace lockstep
