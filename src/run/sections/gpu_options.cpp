// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/sections/gpu_options.h"

#include "config/option.h"

namespace lockstep {

namespace {

constexpr ParamSpec kTable[] = {
    option<&GpuOptions::check_plans>(
        "check_plans", "true", {},
        "Each algorithm that cuDNN or cuBLAS chooses for a shape multiplies small whole numbers once, at the "
        "start, and is passed over with a warning if the result is wrong. false: what the libraries choose "
        "is used as it is."),
};

}  // namespace

std::span<const ParamSpec> gpu_table() { return kTable; }

GpuOptions gpu_options(const Params& section) { return section.as<GpuOptions>(); }

}  // namespace lockstep
