// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep import`: the tensors of a file of another format as a file of weights, for warm_start. One
// process.
#include <algorithm>
#include <filesystem>

#include <fmt/ranges.h>

#include "comm/environment.h"
#include "config/yaml_node.h"
#include "core/log.h"
#include "core/name_list.h"
#include "core/shown_text.h"
#include "core/sizes.h"
#include "driver/command_line/command.h"
#include "driver/command_line/common_options.h"
#include "exchange/checkpoint_tensors.h"
#include "io/output_file.h"
#include "io/print_result.h"
#include "tools/exchange/import_file.h"
#include "tools/exchange/import_plan.h"
#include "tools/exchange/import_text.h"
#include "tools/exchange/model_variables.h"
#include "tools/exchange/ready_maps.h"

namespace lockstep {

namespace {

struct ImportArguments {
  std::string file, output;
  std::string layout;                  ///< lockstep or pytorch; empty: what the file says
  std::string like;                    ///< a run, a checkpoint or a configuration; empty: none
  std::string checkpoint;              ///< of a run directory in `like`: "last" or "best"
  std::string map;                     ///< a file, or the name of a ready map; empty: none
  std::vector<std::string> variables;  ///< patterns; empty: all
  bool show = false;
  bool follow_external = false;
};

constexpr std::string_view kEndings[] = {".h5", ".hdf5"};

/// Refuses left sides that match no variable of the model. Ready maps are for several nets.
void check_map(const ImportMap& map, const std::vector<std::string>& names,
               std::span<const ImportedTensor> tensors, const std::string& path) {
  const std::vector<std::string> unused = map.unused(names);
  if (unused.empty()) return;
  const bool of_file = std::ranges::any_of(
      tensors, [&](const ImportedTensor& tensor) { return tensor.from == unused.front(); });
  throw Error(
      ErrorKind::config, fmt::format("'{}' matches no variable of the model", unused.front()), path,
      of_file ? "It is a tensor of the file: a mapping goes from the model to the file, as warm_start.rename "
                "does. Write VARIABLE: TENSOR."
              : fmt::format("{}Its variables: {}.", advice_for_pattern(unused.front()), name_list(names)));
}

ImportMap map_of(const ImportArguments& arguments, const std::vector<std::string>& names,
                 std::span<const ImportedTensor> tensors) {
  if (arguments.map.empty()) return {};
  if (const std::optional<RenameMap> ready = ready_map(arguments.map)) return ImportMap(*ready);
  std::error_code failed;
  if (!std::filesystem::exists(arguments.map, failed))
    throw Error(ErrorKind::usage, "--map: there is no such file, and no ready map of this name",
                arguments.map, fmt::format("Ready maps: {}.", fmt::join(ready_map_names(), ", ")));
  ImportMap map;
  try {
    map = ImportMap(rename_map(read_yaml(arguments.map)));
  } catch (const Error& error) {  // an invalid pattern
    if (error.kind() != ErrorKind::usage) throw;
    throw Error(ErrorKind::config, error.what_happened(), arguments.map, error.advice());
  }
  check_map(map, names, tensors, arguments.map);
  return map;
}

std::vector<std::string> names_of(std::span<const WantedVariable> variables) {
  std::vector<std::string> names;
  for (const WantedVariable& variable : variables) names.push_back(variable.name);
  return names;
}

/// The variables that --variables chooses.
std::vector<WantedVariable> chosen(std::vector<WantedVariable> all, const ImportArguments& arguments) {
  const NamePatterns patterns(arguments.variables);
  const std::vector<std::string> names = names_of(all);
  if (const std::vector<std::string> unused = patterns.unused(names); !unused.empty())
    throw Error(ErrorKind::usage,
                fmt::format("--variables: no variable of the model matches '{}'", unused.front()),
                arguments.like,
                fmt::format("{}Its variables: {}.", advice_for_pattern(unused.front()), name_list(names)));
  std::erase_if(all, [&](const WantedVariable& variable) { return !patterns.matches(variable.name); });
  return all;
}

/// The tensors under the names of their variables. Every variable must have one, unless the mapping leaves it
/// out.
std::vector<ImportedTensor> taken(const ImportPlan& plan, std::span<const ImportedTensor> tensors,
                                  std::span<const WantedVariable> wanted, const ImportArguments& arguments) {
  std::vector<ImportedTensor> result;
  std::vector<std::string> without;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const ImportPlan::Line& line = plan.lines[i];
    if (line.state == ImportPlan::State::taken) {
      result.push_back(tensors[line.tensors.front()]);
      result.back().tensor.name = wanted[i].name;
    } else if (line.state != ImportPlan::State::left_out) {
      without.push_back(fmt::format("{} ({})", wanted[i].name,
                                    line.state == ImportPlan::State::missing
                                        ? fmt::format("the file has no tensor {}", line.from)
                                        : reason(line, wanted[i], tensors)));
    }
  }
  if (!without.empty())
    throw Error(
        ErrorKind::data,
        fmt::format("{} variable{} of the model get{} no tensor: {}", without.size(),
                    without.size() == 1 ? "" : "s", without.size() == 1 ? "s" : "", name_list(without)),
        arguments.file,
        "Write a mapping for --map; --show proposes one, and VARIABLE: null leaves one out. --variables "
        "chooses those of a part of the model.");
  return result;
}

void declare(CommandOptions& options, ImportArguments& arguments) {
  add_target(options, "FILE", arguments.file,
             "A .safetensors file, a state dict or checkpoint of PyTorch or Lightning (.pt, .pth, .bin, "
             ".ckpt, .pth.tar), weights of Keras 3 (.weights.h5), or an ONNX model (.onnx)");
  options.add("--output", arguments.output, "The file of weights to write (.h5)")
      .type_name("FILE")
      .check(not_empty("a path"));
  add_layout(options, arguments.layout,
             "How safetensors have their tensors; default: as their metadata or their names say");
  options
      .add("--like", arguments.like,
           "A run directory, checkpoint or configuration (.yaml) of the model: its variables are looked for "
           "in the file")
      .type_name("RUN_DIR|FILE|CONFIG")
      .check(not_empty("a path"));
  add_checkpoint_choice(options, arguments.checkpoint);
  options
      .add("--map", arguments.map,
           "With --like: a YAML map with the rules of warm_start.rename, {VARIABLE: NAME IN THE FILE}; "
           "{VARIABLE: null} leaves one out. Or a ready map: torchvision (resnet18, resnet34, resnet50)")
      .type_name("FILE|NAME")
      .check(not_empty("a path"));
  options
      .add("--variables", arguments.variables,
           "With --like: patterns for whole names of the variables to import, as in warm_start.variables; "
           "default: all")
      .type_name("PATTERN")
      .one_value_each();
  options.add_flag("--show", arguments.show,
                   "List variables and tensors and propose a mapping; write nothing");
  options.add_flag(
      "--follow-external", arguments.follow_external,
      "Take values also from files outside of the folder of FILE, to which an HDF5 file may lead");
}

/// Memory that is missing here is not that of a training, whose batch could be smaller.
ImportFile read_file(const ImportArguments& arguments) {
  ImportFile file;
  read_into_memory(
      [&] { return arguments.file; },
      [&] { file = read_import_file(arguments.file, arguments.layout, arguments.follow_external); });
  return file;
}

int run(const ImportArguments& arguments) {
  if (arguments.output.empty() != arguments.show)
    throw Error(ErrorKind::usage, "import needs --output FILE, or --show", "", "See: lockstep import --help");
  if (arguments.like.empty() && !(arguments.map.empty() && arguments.variables.empty()))
    throw Error(ErrorKind::usage,
                fmt::format("{} is for the variables of a model: name it with --like",
                            arguments.map.empty() ? "--variables" : "--map"),
                "", "--like takes a run directory, a checkpoint, or a configuration.");
  if (!arguments.show) output_ending(arguments.output, kEndings);
  if (launcher_rank_hint() != 0) return 0;  // the work of one process
  std::vector<WantedVariable> wanted;
  if (!arguments.like.empty()) wanted = model_variables(arguments.like, arguments.checkpoint);
  ImportFile file = read_file(arguments);
  const ImportMap map = map_of(arguments, names_of(wanted), file.tensors);
  wanted = chosen(std::move(wanted), arguments);
  std::string notes;
  for (const std::string& note : file.notes) notes += shown_text(note) + "\n";
  if (arguments.show) {
    print_lines(notes + (arguments.like.empty()
                             ? tensors_text(file.tensors)
                             : plan_text(propose_import(file.tensors, wanted, map, file.by_order),
                                         file.tensors, wanted)));
    return 0;
  }
  std::vector<std::string> unused;
  if (!arguments.like.empty()) {
    const ImportPlan plan = plan_import(file.tensors, wanted, map);
    for (const std::size_t i : plan.unused) unused.push_back(file.tensors[i].from);
    file.tensors = taken(plan, file.tensors, wanted, arguments);
    if (file.tensors.empty())
      throw Error(ErrorKind::config, "no variable takes a tensor", arguments.file,
                  "Give at least one variable a tensor in the mapping.");
  }
  std::vector<std::string> inputs = {arguments.file};
  inputs.insert(inputs.end(), file.followed.begin(), file.followed.end());
  std::error_code failed;
  if (std::filesystem::exists(arguments.map, failed)) inputs.push_back(arguments.map);
  write_weights_of(file.tensors, arguments.output, inputs);
  if (is_standard_output(arguments.output))
    for (const std::string& other : file.followed)
      log_warning("{}: values come from another file, too: {}", arguments.file, other);
  else
    print_lines(notes + shown_format("{} tensors written to {}\n", file.tensors.size(), arguments.output) +
                (unused.empty() ? "" : shown_format("not used: {}\n", name_list(unused))));
  return 0;
}

}  // namespace

extern const Command kImportCommand = {
    "import", "Write the tensors of a file of another format as weights for a warm start",
    "lockstep import model.safetensors --like runs/digits --show\nlockstep import resnet18.pth --like "
    "flowers.yaml --map torchvision --output weights.h5",
    call_with<ImportArguments, declare, run>};

}  // namespace lockstep
