// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep import`: the tensors of a file of another format as a file of weights, for warm_start. One
// process.
#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>

#include "comm/environment.h"
#include "config/yaml_node.h"
#include "driver/command_line/command.h"
#include "driver/command_line/common_options.h"
#include "exchange/checkpoint_tensors.h"
#include "exchange/keras_layout.h"
#include "exchange/onnx_initializers.h"
#include "exchange/pytorch_layout.h"
#include "exchange/safetensors.h"
#include "exchange/state_dict.h"
#include "io/checkpoint_names.h"
#include "io/checkpoint_tools.h"
#include "io/output_file.h"
#include "io/print_result.h"
#include "session/checkpoint_choice.h"
#include "tools/exchange/exported_layers.h"
#include "tools/exchange/import_plan.h"

namespace lockstep {

namespace {

struct ImportArguments {
  std::string file, output;
  std::string layout = "lockstep";  ///< or pytorch
  std::string checkpoint;           ///< of a run directory in `like`: "last" or "best"
  std::string like;                 ///< a run or checkpoint of the model; empty: none
  std::string map;                  ///< a file; empty: none
  bool show = false;
};

constexpr std::string_view kGroup = "variables/";
constexpr std::string_view kEndings[] = {".h5", ".hdf5"};

/// A file of PyTorch, by its ending; anything else is read as safetensors.
bool is_state_dict(const std::string& path) {
  return std::ranges::any_of(std::array<std::string_view, 3>{".pt", ".pth", ".bin"},
                             [&](std::string_view ending) { return path.ends_with(ending); });
}

/// Runs and HDF5 files of weights are Lockstep's own: warm_start takes them as they are.
void refuse_own_forms(const std::string& path) {
  std::error_code failed;
  const bool is_folder = std::filesystem::is_directory(path, failed);
  const bool is_hdf5 = std::ranges::any_of(
      kEndings, [&](std::string_view ending) { return path.ends_with(ending) && !is_keras_file(path); });
  if (is_folder || is_hdf5)
    throw Error(ErrorKind::usage,
                is_folder ? "is a folder; import reads a file of another program"
                          : "import reads files of other programs, and of HDF5 only Keras's .weights.h5",
                path, "Lockstep's own runs and weights need no import: warm_start.checkpoint takes them.");
}

std::vector<ImportedTensor> read_tensors(const ImportArguments& arguments) {
  refuse_own_forms(arguments.file);
  const bool is_onnx = arguments.file.ends_with(".onnx");
  if ((is_onnx || is_keras_file(arguments.file)) && arguments.layout != "lockstep")
    throw Error(ErrorKind::usage,
                "--layout is for safetensors and state dicts: this file says how its tensors lie",
                arguments.file, "Leave it out.");
  if (is_onnx) return read_onnx_initializers(arguments.file);
  if (is_keras_file(arguments.file)) return from_keras(read_keras_weights(arguments.file).tensors);
  ForeignFile file =
      is_state_dict(arguments.file) ? read_state_dict(arguments.file) : read_safetensors(arguments.file);
  if (arguments.layout == "pytorch") return from_pytorch(file.tensors);
  std::vector<ImportedTensor> tensors;
  for (ForeignTensor& tensor : file.tensors) {
    std::string from = tensor.name;
    tensors.push_back({std::move(from), std::move(tensor)});
  }
  return tensors;
}

/// Applies the mapping file: whole names of the file first, then rules for names of Lockstep.
std::vector<ImportedTensor> mapped(std::vector<ImportedTensor> tensors, const std::string& path) {
  const Node map = read_yaml(path);
  if (map.kind != Node::Kind::map)
    throw Error(ErrorKind::config, "is not a map", path, "Write one line for each tensor: NAME: VARIABLE.");
  std::map<std::string, std::optional<std::string>> exact;
  std::vector<NameRules::Rule> rules;
  for (const auto& [from, to] : map.entries) {
    const bool is_name =
        std::ranges::any_of(tensors, [&](const auto& tensor) { return tensor.from == from; });
    if (to.kind != Node::Kind::scalar && !is_null(to))
      throw Error(ErrorKind::config, fmt::format("'{}' has no name on its right", from), to.where);
    if (is_name)
      exact[from] = is_null(to) ? std::nullopt : std::optional(to.text);
    else if (is_null(to))
      throw Error(ErrorKind::config, fmt::format("the file has no tensor '{}' to leave out", from), to.where,
                  "See: lockstep import FILE --show");
    else
      rules.emplace_back(from, to.text);
  }
  const NameRules renames(rules);
  std::vector<std::string> names;
  for (const ImportedTensor& tensor : tensors) names.push_back(tensor.tensor.name);
  if (const std::vector<std::string> unused = renames.unused(names); !unused.empty())
    throw Error(ErrorKind::config, fmt::format("'{}' matches no tensor", unused.front()), path,
                "See: lockstep import FILE --show");
  std::vector<ImportedTensor> result;
  for (ImportedTensor& tensor : tensors) {
    const auto own = exact.find(tensor.from);
    if (own != exact.end() && !own->second) continue;
    tensor.tensor.name = own != exact.end() ? *own->second : renames.renamed(tensor.tensor.name);
    result.push_back(std::move(tensor));
  }
  return result;
}

/// The variables of a model in the order of its layers.
std::vector<WantedVariable> wanted_of(const std::string& target, const std::string& checkpoint) {
  std::vector<WantedVariable> wanted;
  if (target.empty()) return wanted;
  const CheckpointFile file(chosen_checkpoint(target, checkpoint));
  for (const CheckpointEntry& entry : file.entries()) {
    if (!entry.path.starts_with(kGroup)) continue;
    const auto extents = entry.shape.extents();
    wanted.push_back({entry.path.substr(kGroup.size()), {extents.begin(), extents.end()}});
  }
  const std::vector<LayerKind> layers = layer_kinds(file.header().config, file.path());
  const auto place = [&](const WantedVariable& variable) {
    const std::string layer = variable.name.substr(0, variable.name.rfind('/'));
    return std::ranges::find(layers, layer, &LayerKind::name) - layers.begin();
  };
  std::ranges::stable_sort(wanted, {}, place);
  return wanted;
}

std::string shown(std::span<const ImportedTensor> tensors, std::span<const WantedVariable> wanted) {
  const ImportPlan plan = propose_import(tensors, wanted);
  std::string text, proposed;
  for (const ImportPlan::Line& line : plan.lines) {
    const ImportedTensor& tensor = tensors[line.tensor];
    const std::string to = wanted.empty()          ? tensor.tensor.name
                           : line.variable.empty() ? "nothing"
                                                   : line.variable;
    text += fmt::format("{} {} {} -> {}{}\n", tensor.from, name_of(tensor.tensor.dtype),
                        extents_text(tensor.tensor.extents), to,
                        line.guessed ? " (by shape and order)"
                        : !wanted.empty() && line.variable.empty()
                            ? fmt::format(" (no variable {})", tensor.tensor.name)
                        : !wanted.empty() && !line.fits ? " (another shape there)"
                                                        : "");
    if (line.guessed) proposed += fmt::format("{}: {}\n", tensor.from, line.variable);
    if (!wanted.empty() && line.variable.empty()) proposed += fmt::format("{}: null\n", tensor.from);
  }
  for (const std::string& name : plan.missing) {
    const auto variable = std::ranges::find(wanted, name, &WantedVariable::name);
    text += fmt::format("no tensor for {} {}\n", name, extents_text(variable->extents));
  }
  if (!proposed.empty()) text += "\nA mapping for --map:\n" + proposed;
  return text;
}

/// Every tensor must be a variable of the model, with its shape.
void check_against(std::span<const ImportedTensor> tensors, std::span<const WantedVariable> wanted,
                   const ImportArguments& arguments) {
  for (const auto& [from, tensor] : tensors) {
    const auto same = std::ranges::find(wanted, tensor.name, &WantedVariable::name);
    const std::string what = same == wanted.end() ? fmt::format("the model has no variable {}", tensor.name)
                             : same->extents != tensor.extents
                                 ? fmt::format("{} is {} in the model and {} in the file", tensor.name,
                                               extents_text(same->extents), extents_text(tensor.extents))
                                 : "";
    if (!what.empty())
      throw Error(ErrorKind::data, fmt::format("tensor {}: {}", from, what), arguments.file,
                  "Write a mapping for --map; --show proposes one.");
  }
}

void declare(CommandOptions& options, ImportArguments& arguments) {
  add_target(
      options, "FILE", arguments.file,
      "A .safetensors file, a state dict of PyTorch (.pt, .pth, .bin), weights of Keras 3 (.weights.h5), "
      "or an ONNX model (.onnx)");
  options.add("--output", arguments.output, "The file of weights to write (.h5)")
      .type_name("FILE")
      .check(not_empty("a path"));
  add_layout(options, arguments.layout, "How the file has its tensors; default: lockstep");
  options
      .add("--like", arguments.like,
           "A run directory or checkpoint of the model: names and shapes are compared with it")
      .type_name("RUN_DIR|FILE")
      .check(not_empty("a path"));
  add_checkpoint_choice(options, arguments.checkpoint);
  options
      .add("--map", arguments.map,
           "A YAML map: {NAME: VARIABLE} for one tensor of the file, {NAME: null} leaves it out; "
           "{SCOPE/: SCOPE/} and patterns rename by Lockstep's names, as warm_start.rename does")
      .type_name("FILE")
      .check(not_empty("a path"));
  options.add_flag("--show", arguments.show, "List both sides and propose a mapping; write nothing");
}

int run(const ImportArguments& arguments) {
  if (arguments.output.empty() != arguments.show)
    throw Error(ErrorKind::usage, "import needs --output FILE, or --show", "", "See: lockstep import --help");
  if (!arguments.show) output_ending(arguments.output, kEndings);
  if (launcher_rank_hint() != 0) return 0;  // the work of one process
  const std::vector<WantedVariable> wanted = wanted_of(arguments.like, arguments.checkpoint);
  std::vector<ImportedTensor> tensors = read_tensors(arguments);
  if (!arguments.map.empty()) tensors = mapped(std::move(tensors), arguments.map);
  if (arguments.show) {
    print_result("{}", shown(tensors, wanted));
    return 0;
  }
  if (!wanted.empty()) check_against(tensors, wanted, arguments);
  std::vector<std::string> inputs = {arguments.file};
  if (!arguments.map.empty()) inputs.push_back(arguments.map);
  write_weights_of(tensors, arguments.output, inputs);
  if (!is_standard_output(arguments.output))
    print_result("{} tensors written to {}\n", tensors.size(), arguments.output);
  return 0;
}

}  // namespace

extern const Command kImportCommand = {
    "import", "Write the tensors of a file of another format as weights for a warm start",
    "lockstep import model.safetensors --layout pytorch --like runs/digits --show\n"
    "lockstep import model.safetensors --layout pytorch --output weights.h5",
    call_with<ImportArguments, declare, run>};

}  // namespace lockstep
