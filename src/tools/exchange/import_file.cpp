// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/exchange/import_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>

#include "core/error.h"
#include "core/message_lines.h"
#include "core/shell_word.h"
#include "core/shown_text.h"
#include "exchange/keras_layout.h"
#include "exchange/onnx_initializers.h"
#include "exchange/pytorch_layout.h"
#include "exchange/safetensors.h"
#include "exchange/state_dict.h"
#include "io/followed_files.h"
#include "io/tensor_values.h"

namespace lockstep {

namespace {

bool ends_with_one_of(const std::string& path, std::initializer_list<std::string_view> endings) {
  return std::ranges::any_of(endings, [&](std::string_view ending) { return path.ends_with(ending); });
}

/// A file of PyTorch, by its ending or its first bytes: a ZIP file, or a pickle of versions before 1.6.
bool is_state_dict(const std::string& path) {
  if (ends_with_one_of(path, {".pt", ".pth", ".bin", ".ckpt", ".pth.tar", ".pt.tar"})) return true;
  if (path.ends_with(".safetensors")) return false;
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed)) return false;
  std::ifstream file(path, std::ios::binary);
  char begin[4] = {};
  return file.read(begin, sizeof begin) && std::string_view(begin, sizeof begin) == "PK\x03\x04";
}

/// What Keras writes next to its weights: an archive, or HDF5 of version 2.
void refuse_models_of_keras(const std::string& path) {
  if (path.ends_with(".keras"))
    throw error_of_lines(
        ErrorKind::data, "is a model of Keras, an archive in which the weights are a file", path,
        shown_format("Run: unzip -p {} model.weights.h5 > model.weights.h5\n  Then: lockstep import "
                     "model.weights.h5",
                     shell_word(path)));
}

/// Runs and HDF5 files of weights are Lockstep's own: warm_start takes them as they are.
void refuse_own_forms(const std::string& path) {
  std::error_code failed;
  const bool is_folder = std::filesystem::is_directory(path, failed);
  if (is_folder || (ends_with_one_of(path, {".h5", ".hdf5"}) && !is_keras_file(path)))
    throw Error(
        ErrorKind::usage,
        is_folder ? "is a folder; import reads a file of another program"
                  : "import reads files of other programs, and of HDF5 only Keras's .weights.h5",
        path,
        "Lockstep's own runs and weights need no import: warm_start.checkpoint takes them. Older files of "
        "Keras: load them there, and write model.save_weights(\"x.weights.h5\").");
}

std::string metadata_of(const ForeignFile& file, std::string_view key) {
  for (const auto& [name, text] : file.metadata)
    if (name == key) return text;
  return "";
}

/// The layout of safetensors: what Lockstep or another program has written about it, or how names are built.
std::string layout_of(const ForeignFile& file, const std::string& asked, const std::string& path,
                      std::vector<std::string>& notes) {
  std::string said = metadata_of(file, "layout");  // lockstep export
  if (said != "lockstep" && said != "pytorch") said = metadata_of(file, "format") == "pt" ? "pytorch" : "";
  if (!asked.empty() && !said.empty() && asked != said)
    throw Error(ErrorKind::usage,
                fmt::format("--layout {}: the file says that its layout is {}", asked, said), path,
                "Leave the option out.");
  if (!asked.empty()) return asked;
  if (!said.empty()) return said;
  const bool as_pytorch = std::ranges::any_of(
      file.tensors, [](const ForeignTensor& tensor) { return tensor.name.ends_with(".weight"); });
  if (as_pytorch)
    notes.emplace_back("names end with .weight: read in the layout of PyTorch (--layout pytorch)");
  return as_pytorch ? "pytorch" : "lockstep";
}

/// Variables are float32: other types of fractions become that.
void hold_as_float32(ImportFile& file) {
  std::size_t count = 0;
  std::string types;
  for (ImportedTensor& imported : file.tensors) {
    ForeignTensor& tensor = imported.tensor;
    if (tensor.dtype != DType::f16 && tensor.dtype != DType::bf16 && tensor.dtype != DType::f64) continue;
    const std::vector<double> values =
        values_of(Tensor(tensor.bytes.data(), tensor.dtype, Shape(tensor.extents)));
    std::vector<std::byte> bytes(values.size() * sizeof(float));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto value = static_cast<float>(values[i]);
      std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
    }
    const std::string type(name_of(tensor.dtype));
    if (types.find(type) == std::string::npos) types += (types.empty() ? "" : ", ") + type;
    tensor.bytes = std::move(bytes);
    tensor.dtype = DType::f32;
    ++count;
  }
  if (count > 0)
    file.notes.push_back(fmt::format("{} tensor{} of {} become{} float32", count, count == 1 ? "" : "s",
                                     types, count == 1 ? "s" : ""));
}

ImportFile read_any(const std::string& path, const std::string& layout, FollowedFiles& followed);

void check_names(const ImportFile& file, const std::string& path) {
  if (file.tensors.empty())
    throw Error(ErrorKind::data, "has no tensors", path, "Give a file that has the weights of a model.");
  std::set<std::string_view> names;
  for (const ImportedTensor& tensor : file.tensors)
    if (!names.insert(tensor.from).second)
      throw Error(ErrorKind::data, fmt::format("has two tensors of the name '{}'", tensor.from), path,
                  "Write the file again, each tensor with a name of its own.");
}

}  // namespace

ImportFile read_import_file(const std::string& path, const std::string& layout, bool follow_external) {
  FollowedFiles followed(path, follow_external);
  ImportFile file = read_any(path, layout, followed);
  check_names(file, path);
  for (const auto& [other, role] : followed.all()) {
    file.followed.push_back(other);
    file.notes.push_back(fmt::format("values come from another file, too: {} {}", role, other));
  }
  hold_as_float32(file);
  return file;
}

namespace {

ImportFile read_any(const std::string& path, const std::string& layout, FollowedFiles& followed) {
  refuse_models_of_keras(path);
  refuse_own_forms(path);
  ImportFile result;
  const bool is_onnx = path.ends_with(".onnx");
  result.by_order = is_keras_file(path);
  if ((is_onnx || result.by_order) && !layout.empty())
    throw Error(ErrorKind::usage, "--layout is for safetensors: this file says how its tensors lie", path,
                "Leave it out.");
  if (is_onnx)
    result.tensors = read_onnx_initializers(path);
  else if (result.by_order)
    result.tensors = from_keras(read_keras_weights(path, followed).tensors);
  if (is_onnx || result.by_order) return result;
  const bool of_pytorch = is_state_dict(path);
  if (of_pytorch && layout == "lockstep")
    throw Error(ErrorKind::usage, "--layout lockstep: a state dict always has the layout of PyTorch", path,
                "Leave the option out.");
  ForeignFile file = of_pytorch ? read_state_dict(path) : read_safetensors(path);
  if (of_pytorch)
    for (const auto& [key, text] : file.metadata) result.notes.push_back(text);
  if (of_pytorch || layout_of(file, layout, path, result.notes) == "pytorch") {
    result.tensors = from_pytorch(file.tensors);
    return result;
  }
  for (ForeignTensor& tensor : file.tensors) {
    std::string from = tensor.name;
    result.tensors.push_back({std::move(from), std::move(tensor)});
  }
  return result;
}

}  // namespace

}  // namespace lockstep
