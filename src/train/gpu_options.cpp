// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/gpu_options.h"

#include "config/option.h"
#include "train/branches.h"

namespace lockstep {

namespace {

constexpr ParamSpec kTable[] = {
    option<&GpuOptions::check_plans>(
        "check_plans", "true", {},
        "Each algorithm that cuDNN or cuBLAS chooses for a shape multiplies small whole numbers once, at the "
        "start, and is passed over with a warning if the result is wrong. false: what the libraries choose "
        "is used as it is."),
    option_as<is_second_choice, &GpuOptions::measures>(
        ParamType::string, "choose", "heuristic", one_of("heuristic|measured"),
        "How an algorithm of cuDNN or cuBLAS is chosen for a shape. heuristic: the first deterministic one "
        "of "
        "the library's list. measured: the first rank times up to 8 of them once, at the run's start; the "
        "run "
        "keeps its choice in configs/gpu_choices.txt, and all ranks and all later jobs of the run use it."),
    option<&GpuOptions::branches>(
        "branches", "null", between(1, kMostBranches).or_null(),
        "Microshards of a rank that its GPU computes at the same time in training, each with memory of its "
        "own. Bits do not depend on it. null: one per microshard, up to 8 and as long as those after the "
        "first take at most 1 GiB together.",
        Change::free),
};

}  // namespace

std::span<const ParamSpec> gpu_table() { return kTable; }

GpuOptions gpu_options(const Params& section) { return section.as<GpuOptions>(); }

}  // namespace lockstep
