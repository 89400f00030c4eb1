// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/precision_options.h"

#include <cmath>

#include "config/option.h"
#include "core/scalar.h"

namespace lockstep {

namespace {

/// The section as it is written.
struct Section {
  PrecisionOptions options;
  Node loss_scale;
};
using Options = PrecisionOptions;

/// float32|bfloat16|float16
DType activation_type(const Params& section, const ParamSpec& option) {
  constexpr DType kChoices[] = {DType::f32, DType::bf16, DType::f16};
  return kChoices[choice_index(section, option)];
}

constexpr ParamSpec kTable[] = {
    option_as<activation_type, &Section::options, &Options::compute>(
        ParamType::string, "compute", "float32", one_of("float32|bfloat16|float16"),
        "Type of activations and their gradients. Variables, their gradients, statistics and losses are "
        "always float32."),
    option<&Section::loss_scale>(
        "loss_scale", "auto", in_words("auto|dynamic|a power of two"),
        "Factor of the loss before the backward pass; the summed gradients are divided by it. auto: dynamic "
        "for float16, else 1. dynamic: starts at 65536, is halved where gradients overflow (the update of "
        "that step is omitted), and doubled after loss_scale_growth_steps steps without overflow."),
    option<&Section::options, &Options::loss_scale, &LossScale::growth_steps>(
        "loss_scale_growth_steps", "2000", between(1, 1e12), "See loss_scale."),
    option<&Section::options, &Options::allow_tf32>(
        "allow_tf32", "false", {},
        "On a GPU: matrix products and convolutions may round their factors to 10 bits of mantissa (TF32), "
        "which is faster."),
};

void settle_loss_scale(const Params& section, const Section& written, PrecisionOptions& options) {
  const std::string& text = written.loss_scale.text;  // of a list or a map: empty
  if (text == "dynamic" || (text == "auto" && options.compute == DType::f16)) {
    options.loss_scale.dynamic = true;
    options.loss_scale.initial = LossScale::kDynamicInitial;
  } else if (text != "auto") {
    const auto number = parse_real(text);
    int exponent = 0;
    if (!number || !(*number >= 1) || *number > LossScale::kMost || std::frexp(*number, &exponent) != 0.5)
      throw section.error(
          option_name<&Section::loss_scale>(section), fmt::format("'{}' is no loss scale", text),
          "Use auto, dynamic, or a power of two of at least 1, such as 1024 (any other would change bits).");
    options.loss_scale.initial = *number;
  }
}

}  // namespace

std::span<const ParamSpec> precision_table() { return kTable; }

PrecisionOptions precision_options(const Params& section) {
  const auto written = section.as<Section>();
  PrecisionOptions options = written.options;
  settle_loss_scale(section, written, options);
  return options;
}

}  // namespace lockstep
