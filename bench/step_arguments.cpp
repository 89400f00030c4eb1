// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "step_arguments.h"

#include <charconv>
#include <string_view>

#include "core/error.h"

namespace lockstep {

namespace {
std::int64_t number(std::string_view text, std::int64_t least) {
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least)
    throw Error(ErrorKind::usage, fmt::format("'{}' is not a whole number of at least {}", text, least));
  return value;
}

DType activation_type(std::string_view name) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16})
    if (name_of(type) == name) return type;
  throw Error(ErrorKind::usage, fmt::format("'{}' is not an activation type", name), {},
              "float32, bfloat16, float16");
}
}  // namespace

StepArguments step_arguments(int argc, char** argv) {
  StepArguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--parts") {
      arguments.parts = true;
      continue;
    }
    if (name == "--tf32") {
      arguments.tf32 = true;
      continue;
    }
    if (name == "--shard-update") {
      arguments.shard = true;
      continue;
    }
    if (name == "--compress") {
      arguments.compress = true;
      continue;
    }
    if (name == "--error-feedback") {
      arguments.compress = arguments.error_feedback = true;
      continue;
    }
    if (name == "--recompute") {
      arguments.recompute = true;
      continue;
    }
    if (name == "--shared-memory") {
      arguments.shared_memory = true;
      continue;
    }
    if (name == "--no-convolutions") {
      arguments.convolutions = false;
      continue;
    }
    if (i + 1 >= argc) throw Error(ErrorKind::usage, fmt::format("{} needs a value", name));
    const std::string_view value = argv[++i];
    if (name == "--net")
      arguments.nets = value;
    else if (name == "--json")
      arguments.json = value;
    else if (name == "--device")
      arguments.device = value;
    else if (name == "--compute")
      arguments.compute = activation_type(value);
    else if (name == "--batch")
      arguments.batch = number(value, 1);
    else if (name == "--shards")
      arguments.shards = number(value, 1);
    else if (name == "--sparse-below")
      arguments.sparse_below = std::stod(std::string(value));
    else if (name == "--clip")
      arguments.clip = std::stod(std::string(value));
    else if (name == "--threads")
      arguments.threads = number(value, 1);
    else if (name == "--scale")
      arguments.scale = number(value, 1);
    else if (name == "--steps")
      arguments.steps = number(value, 0);
    else if (name == "--repeat")
      arguments.repeat = number(value, 1);
    else
      throw Error(ErrorKind::usage, fmt::format("unknown option {}", name), {},
                  "--net, --batch, --shards, --threads, --scale, --steps, --repeat, --parts, "
                  "--sparse-below, --clip, --shard-update, --compress, --error-feedback, --shared-memory, "
                  "--recompute, "
                  "--no-convolutions, --json FILE, --device "
                  "cpu|cuda, --tf32, "
                  "--compute float32|bfloat16|float16");
  }
  LOCKSTEP_REQUIRE(!arguments.parts || arguments.threads == 1, ErrorKind::usage,
                   "--parts needs one thread, since the passes of several threads overlap");
  LOCKSTEP_REQUIRE(!arguments.parts || !arguments.shard, ErrorKind::usage,
                   "--parts times an update that every rank makes whole");
  LOCKSTEP_REQUIRE(!arguments.parts || !arguments.compress, ErrorKind::usage,
                   "--parts times sums that are not rounded");
  LOCKSTEP_REQUIRE(!arguments.parts || arguments.compute != DType::f16, ErrorKind::usage,
                   "--parts does not support a loss scale, which float16 needs");
  return arguments;
}

}  // namespace lockstep
