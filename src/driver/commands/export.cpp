// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep export`: the variables of a checkpoint as a file of another format. One process.
#include <algorithm>

#include "comm/environment.h"
#include "driver/command_line/command.h"
#include "driver/command_line/common_options.h"
#include "exchange/checkpoint_tensors.h"
#include "exchange/keras_layout.h"
#include "exchange/safetensors.h"
#include "io/checkpoint_tools.h"
#include "io/output_file.h"
#include "io/print_result.h"
#include "run/jobs/onnx_export.h"
#include "session/checkpoint_choice.h"
#include "tools/exchange/exported_layers.h"

namespace lockstep {

namespace {

struct ExportArguments {
  std::string target, output;
  std::string format;               ///< empty: by the ending of the output
  std::string layout = "lockstep";  ///< or pytorch
  std::string checkpoint;           ///< of a run directory: "last" or "best"; empty: the last
  bool averages = true, fold_batch_norm = false, with_normalisation = false;
  std::string input_layout = "channels_last";
  bool channels_first() const { return input_layout == "channels_first" || input_layout == "nchw"; }
};

constexpr std::string_view kEndings[] = {".safetensors", ".onnx", ".h5", ".hdf5"};

std::string format_of(const ExportArguments& arguments) {
  if (!arguments.format.empty()) return arguments.format;
  if (is_keras_file(arguments.output)) return "keras";
  const std::string_view ending = output_ending(arguments.output, kEndings);
  return ending == ".safetensors" ? "safetensors" : ending == ".onnx" ? "onnx" : "hdf5";
}

void export_safetensors(const ExportArguments& arguments, const CheckpointFile& file) {
  OutputFile output(arguments.output, std::vector{file.path()});
  std::vector<ForeignTensor> tensors = checkpoint_tensors(file, arguments.averages);
  if (arguments.layout == "pytorch") {
    const std::vector<LayerKind> layers = layer_kinds(file.header().config, file.path());
    for (ForeignTensor& tensor : tensors) tensor = to_pytorch(tensor, layers);
  }
  std::vector<std::pair<std::string, std::string>> facts = checkpoint_facts(file.header());
  facts.emplace_back("layout", arguments.layout);
  const std::string header = safetensors_header(tensors, facts);
  output.append(header.data(), header.size());
  for (const ForeignTensor& tensor : tensors) output.append(tensor.bytes.data(), tensor.bytes.size());
  output.publish();
  if (!is_standard_output(arguments.output))
    print_result("{} variables of step {} written to {}\n", tensors.size(), file.header().global_step,
                 arguments.output);
}

void export_keras(const ExportArguments& arguments, const CheckpointFile& file) {
  OutputFile output(arguments.output, std::vector{file.path()});
  const std::vector<ForeignTensor> tensors =
      to_keras(checkpoint_tensors(file, arguments.averages), layer_kinds(file.header().config, file.path()));
  write_keras_weights(output.seekable(), arguments.output, tensors);
  output.publish();
  if (!is_standard_output(arguments.output))
    print_result("{} variables of step {} written to {}\n", tensors.size(), file.header().global_step,
                 arguments.output);
}

void export_net(const ExportArguments& arguments) {
  const OnnxExport done = export_onnx(arguments.target, arguments.output,
                                      {.checkpoint = arguments.checkpoint,
                                       .averages = arguments.averages,
                                       .fold_batch_norm = arguments.fold_batch_norm,
                                       .with_normalisation = arguments.with_normalisation,
                                       .inputs_channels_first = arguments.channels_first()});
  if (!is_standard_output(arguments.output))
    print_result("{} layers of step {} written to {}{}\n", done.layers, done.global_step, arguments.output,
                 done.folded.empty() ? "" : fmt::format("; {} batch norms folded", done.folded.size()));
}

void declare(CommandOptions& options, ExportArguments& arguments) {
  add_target(options, "RUN_DIR|FILE", arguments.target,
             "Run directory or exported folder, for its newest checkpoint, or a checkpoint file");
  add_output(options, arguments.output);
  options.add("--format", arguments.format, "The format; default: by the ending of the output")
      .type_name("safetensors|onnx|keras|hdf5")
      .check(one_of_names({"safetensors", "onnx", "keras", "hdf5"}));
  add_layout(
      options, arguments.layout,
      "safetensors: names and layouts of the variables; default: lockstep, as the checkpoint has them");
  options.add_flag("--fold-batch-norm", arguments.fold_batch_norm,
                   "onnx: put batch norms into the kernels of dense layers and convolutions before them");
  options
      .add("--input-layout", arguments.input_layout,
           "onnx: the layout of the model's inputs; nhwc and nchw are the same; default: channels_last")
      .type_name("channels_last|channels_first")
      .check(one_of_names({"channels_last", "channels_first", "nhwc", "nchw"}));
  options.add_flag("--with-normalisation", arguments.with_normalisation,
                   "onnx: the model takes samples as they are stored, and begins with scale, offset, mean, "
                   "std, normalize, whiten and transforms of section data");
  add_checkpoint_choice(options, arguments.checkpoint);
  add_averages(options, arguments.averages);
}

int run(const ExportArguments& arguments) {
  const std::string format = format_of(arguments);
  if (launcher_rank_hint() != 0) return 0;  // the work of one process
  if (format != "safetensors" && arguments.layout != "lockstep")
    throw Error(ErrorKind::usage, "--layout is an option of the format safetensors", "",
                "Leave it out, or export to a file that ends with .safetensors.");
  const char* const of_onnx = arguments.fold_batch_norm                   ? "--fold-batch-norm"
                              : arguments.with_normalisation              ? "--with-normalisation"
                              : arguments.input_layout != "channels_last" ? "--input-layout"
                                                                          : nullptr;
  if (format != "onnx" && of_onnx != nullptr)
    throw Error(ErrorKind::usage, fmt::format("{} is an option of the format onnx", of_onnx), "",
                "Leave it out, or export to a file that ends with .onnx.");
  if (format == "onnx") {
    export_net(arguments);
    return 0;
  }
  const CheckpointFile file = open_chosen_checkpoint(arguments.target, arguments.checkpoint);
  if (format == "keras")
    export_keras(arguments, file);
  else if (format == "safetensors")
    export_safetensors(arguments, file);
  else
    export_weights(file, NamePatterns(), NameRules(), arguments.output, arguments.averages);
  return 0;
}

}  // namespace

extern const Command kExportCommand = {
    "export", "Write the net or the variables of a run to a file of another format",
    "lockstep export runs/digits --output digits.safetensors\n"
    "lockstep export runs/digits --output digits.safetensors --layout pytorch\n"
    "lockstep export runs/digits --output digits.onnx --fold-batch-norm\n"
    "lockstep export runs/digits --output digits.onnx --input-layout channels_first --with-normalisation\n"
    "lockstep export runs/digits --output digits.weights.h5",
    call_with<ExportArguments, declare, run>};

}  // namespace lockstep
