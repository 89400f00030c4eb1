// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Speed of the GPU's kernels relative to the card: passes over memory in GB/s compared with the card's own
// copy; dense layers, convolutions and attention in TFLOP/s compared with a large matrix product in the same
// type.
//
//   kernel_rates [--only GROUP[,GROUP]] [--compute TYPE[,TYPE]] [--tiny] [--json FILE]
//
// Groups: updates, passes, sequence, gemm, dense, convolutions, attention; default: all. Types: float32, tf32
// (for matrix products and convolutions only), bfloat16, float16; default: the first three. Optimizer updates
// support float32 only. Bytes are those that a pass must read and write once; arrays are larger than the
// card's caches, except those of single layers at a step's size, which a cache may hold. If a row fails, the
// table shows it, the other rows go on, and the exit code is 1. The JSON file is complete after every row.
// --tiny: small arrays, one call each, for a trial run.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "gpu/rate_bench.h"
#include "kernels/backend_cuda.h"

namespace {

using namespace lockstep;

constexpr std::string_view kGroups[] = {"updates", "passes",       "sequence", "gemm",
                                        "dense",   "convolutions", "attention"};
constexpr ComputeType kTypes[] = {{DType::f32}, {DType::f32, true}, {DType::bf16}, {DType::f16}};

struct Arguments {
  std::vector<std::string_view> groups{std::begin(kGroups), std::end(kGroups)};
  std::vector<ComputeType> types{kTypes[0], kTypes[1], kTypes[2]};
  RateOptions bench;
};

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    words.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return words;
}

Arguments arguments_of(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--tiny") {
      arguments.bench.tiny = true;
      continue;
    }
    LOCKSTEP_REQUIRE(i + 1 < argc, ErrorKind::usage, "{} needs a value", name);
    const std::string_view value = argv[++i];
    if (name == "--json") {
      arguments.bench.json = value;
    } else if (name == "--only") {
      arguments.groups = words_of(value);
      for (const std::string_view group : arguments.groups)
        if (std::ranges::find(kGroups, group) == std::end(kGroups))
          throw Error(ErrorKind::usage, fmt::format("no group '{}'", group), {},
                      fmt::format("{}", fmt::join(kGroups, ", ")));
    } else if (name == "--compute") {
      arguments.types.clear();
      for (const std::string_view type : words_of(value)) {
        const auto* const found =
            std::ranges::find_if(kTypes, [&](const ComputeType& known) { return known.name() == type; });
        if (found == std::end(kTypes))
          throw Error(ErrorKind::usage, fmt::format("no type '{}'", type), {},
                      "float32, tf32, bfloat16, float16");
        arguments.types.push_back(*found);
      }
    } else {
      throw Error(ErrorKind::usage, fmt::format("unknown option {}", name), {},
                  "--only GROUP[,GROUP], --compute TYPE[,TYPE], --tiny, --json FILE");
    }
  }
  return arguments;
}

/// Returns the number of rows that failed.
int run(const Arguments& arguments) {
  Backend& backend = cuda_backend();
  LOCKSTEP_REQUIRE(backend.num_devices() > 0, ErrorKind::device, "no GPU: {}", backend.problem());
  RateBench bench(backend, arguments.bench);
  const auto wanted = [&](std::string_view group) {
    return std::ranges::find(arguments.groups, group) != arguments.groups.end();
  };
  if (wanted("updates") || wanted("passes") || wanted("sequence"))
    bench.copy(bench.tiny() ? 10'000 : 1'000'000'000);
  if (wanted("updates")) update_rates(bench);
  for (const ComputeType& type : arguments.types) {
    if (wanted("passes") && !type.tf32) pass_rates(bench, type.dtype);
    if (wanted("sequence") && !type.tf32) sequence_pass_rates(bench, type.dtype);
  }
  for (const ComputeType& type : arguments.types) {
    if (wanted("gemm") || wanted("dense") || wanted("convolutions") || wanted("attention"))
      gemm_rate(bench, type);
    if (wanted("dense")) dense_rates(bench, type);
    if (wanted("convolutions")) convolution_rates(bench, type);
    if (wanted("attention") && !type.tf32) attention_rates(bench, type.dtype);
  }
  return bench.failures();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int failures = run(arguments_of(argc, argv));
    if (failures > 0) std::fprintf(stderr, "kernel_rates: %d rows failed\n", failures);
    return failures > 0 ? 1 : 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "kernel_rates: %s\n", error.what());
    return exit_code(error.kind());
  }
}
