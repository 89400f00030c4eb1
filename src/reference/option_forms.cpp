// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What options of type "map or value" take, and an example of each option.
#include <fmt/format.h>

#include <algorithm>

#include "config/param_reader.h"
#include "core/error.h"
#include "reference/option_catalogue.h"

namespace lockstep {

namespace {

constexpr std::string_view kColumns = R"j({"$ref": "#/definitions/columns"})j";
constexpr std::string_view kColumn = R"j({"type": ["integer", "string"]})j";
constexpr std::string_view kIntegers = R"j({"$ref": "#/definitions/integers"})j";
constexpr std::string_view kTexts = R"j({"$ref": "#/definitions/texts"})j";
constexpr std::string_view kSets =
    R"j({"type": "object", "additionalProperties": {"$ref": "#/definitions/data_input"}})j";

// clang-format off: one per line
constexpr NodeForm kForms[] = {
    {"", "*initializer", R"j({"$ref": "#/definitions/initializer"})j", "{normal: {stddev: 0.01}}"},
    {"", "rule", R"j({"$ref": "#/definitions/optimizer_rule"})j", "{momentum: {learning_rate: 0.1}}"},
    {"", "warmup", R"j({"$ref": "#/definitions/warm-up"})j", "{linear: {steps: 500}}"},
    {"", "loss", R"j({"$ref": "#/definitions/loss"})j", "mean_squared_error"},
    {"", "thresholds", R"j({"anyOf": [{"const": "best_f1"}, {"$ref": "#/definitions/numbers"}]})j",
     "best_f1"},
    {"", "class_weights", R"j({"anyOf": [{"const": "balanced"}, {"$ref": "#/definitions/numbers"}]})j",
     "balanced"},
    {"", "sample_weights", R"j({"type": ["integer", "string"]})j", "weight"},
    {"Layer pad", "padding", kIntegers, "[1, 1]"},
    {"Layer crop", "cropping", kIntegers, "[1, 1]"},
    {"", "padding", R"j({"anyOf": [{"enum": ["same", "valid"]}, {"$ref": "#/definitions/integers"}]})j",
     "valid"},
    {"Top level", "data", R"j({"$ref": "#/definitions/data"})j", "{format: csv, path: data.csv}"},
    {"Top level", "model", R"j({"$ref": "#/definitions/model"})j", "{layers: [{dense: {units: 10}}]}"},
    {"Top level", "optimizer", R"j({"$ref": "#/definitions/optimizer"})j", "{adam: {learning_rate: 0.001}}"},
    {"Top level", "average", R"j({"$ref": "#/definitions/average"})j", "{ema: {decay: 0.999}}"},
    {"Top level", "train", R"j({"$ref": "#/definitions/section_train"})j", "{batch_size: 64, epochs: 10}"},
    {"Top level", "gradients", R"j({"$ref": "#/definitions/section_gradients"})j", "{clip_global_norm: 1}"},
    {"Top level", "eval", R"j({"$ref": "#/definitions/section_eval"})j", "{every_epochs: 1}"},
    {"Top level", "checkpoint", R"j({"$ref": "#/definitions/section_checkpoint"})j", "{every_epochs: 1}"},
    {"Top level", "warm_start", R"j({"$ref": "#/definitions/section_warm_start"})j",
     "{checkpoint: runs/first}"},
    {"Top level", "summary", R"j({"$ref": "#/definitions/section_summary"})j", "{every_steps: 10}"},
    {"Top level", "experiment", R"j({"$ref": "#/definitions/section_experiment"})j", "{exports: [latest]}"},
    {"Top level", "comm", R"j({"$ref": "#/definitions/section_comm"})j", "{timeout_seconds: 300}"},
    {"Top level", "cluster", R"j({"$ref": "#/definitions/section_cluster"})j", "{ps: 1}"},
    {"Top level", "precision", R"j({"$ref": "#/definitions/section_precision"})j", "{compute: bfloat16}"},
    {"Top level", "gpu", R"j({"$ref": "#/definitions/section_gpu"})j", "{branches: 4}"},
    {"Top level", "sweep", R"j({"$ref": "#/definitions/section_sweep"})j", "{keys: {seed: [1, 2, 3]}}"},
    {"Section sweep", "keys",
     R"j({"type": "object", "additionalProperties": {"anyOf": [{"type": "array"}, {"$ref": "#/definitions/sweep_range"}]}})j",
     "{optimizer.learning_rate: [0.001, 0.01]}"},
    {"Section sweep", "list", R"j({"type": "array", "items": {"type": "object"}})j",
     "[{seed: 1}, {seed: 2}]"},
    {"Section sweep", "halving", R"j({"$ref": "#/definitions/section_sweep.halving"})j", "{first: 1}"},
    {"Section cluster", "places", R"j({"type": "object", "additionalProperties": {"type": "integer"}})j",
     "{\"logits/*\": 0}"},
    {"Section cluster", "tasks", R"j({"anyOf": [{"const": "TF_CONFIG"}, {"type": "object"}]})j",
     "{chief: [n01], worker: [n02], ps: [n03]}"},
    {"Top level", "hooks", R"j({"type": "array", "items": {"$ref": "#/definitions/hook"}})j",
     "[{logging: {every_steps: 100}}]"},
    {"Section eval", "metrics", R"j({"type": "array", "items": {"$ref": "#/definitions/metric"}})j",
     "[{top_k: {k: 5}}]"},
    {"Section warm_start", "rename", R"j({"type": "object", "additionalProperties": {"type": "string"}})j",
     "{head/: top/}"},
    {"Section experiment", "exports", R"j({"type": "array", "items": {"$ref": "#/definitions/export"}})j",
     "[latest, {best: {metric: accuracy, mode: max}}]"},
    {"Section precision", "loss_scale",
     R"j({"anyOf": [{"enum": ["auto", "dynamic"]}, {"type": "number", "exclusiveMinimum": 0}]})j", "dynamic"},
    {"Section data", "inputs", kSets, "{image: {features: images}, age: {features: ages}}"},
    {"Section data", "sources", kSets, "{first: {path: a.csv}, second: {path: b.csv, share: 2}}"},
    {"Section data", "targets", kSets, "{weight: {features: weights}}"},
    {"Section data", "train", R"j({"type": "object"})j", "{rows: [0, 1500]}"},
    {"Section data", "eval", R"j({"type": "object"})j", "{rows: [1500, 1797]}"},
    {"Every data set", "transforms", R"j({"type": "array", "items": {"$ref": "#/definitions/transform"}})j",
     "[{random_flip: {}}]"},
    {"Every data set", "whiten", R"j({"$ref": "#/definitions/whitening"})j", "zca"},
    {"Samples of a set", "class_shares",
     R"j({"type": "object", "additionalProperties": {"type": "number"}})j", "{0: 2}"},
    {"Every training set", "mix", R"j({"$ref": "#/definitions/section_data.mix"})j", "{mixup: 0.2}"},
    {"Reader csv", "columns", kColumns, "[age, height]"},
    {"Reader hdf5", "window", R"j({"$ref": "#/definitions/section_data.window"})j",
     "{inputs: 4, horizon: 1}"},
    {"Reader csv", "ignore", kColumns, "[id]"},
    {"Reader csv", "labels", kColumns, "[price]"},
    {"Reader csv", "key_column", kColumn, "id"},
    {"Reader csv", "classes", kTexts, "auto"},
    {"Reader csv", "categories",
     R"j({"type": "object", "additionalProperties": {"$ref": "#/definitions/texts"}})j", "{colour: auto}"},
    {"Reader csv", "missing", R"j({"anyOf": [{"const": "error"}, {"type": ["number", "object"]}]})j", "0"},
    {"Reader csv", "missing_values", kTexts, "[NA, unknown]"},
    {"Reader jsonl", "missing", R"j({"anyOf": [{"const": "error"}, {"type": ["number", "object"]}]})j", "0"},
    {"Reader tfrecord", "missing", R"j({"anyOf": [{"const": "error"}, {"type": ["number", "object"]}]})j",
     "0"},
    {"Reader text_tsv", "split_column", kColumn, "0"},
    {"Reader text_tsv", "label_column", kColumn, "1"},
    {"Reader text_tsv", "text_column", kColumn, "2"},
    {"Section model", "layers", R"j({"type": "array", "items": {"$ref": "#/definitions/layer_or_block"}})j",
     "[{dense: {units: 64}}, relu, {dense: {units: 10}}]"},
    {"Section model", "blocks",
     R"j({"type": "object", "additionalProperties": {"$ref": "#/definitions/block"}})j",
     "{two: {parameters: {n: 8}, layers: [{dense: {units: $n}}, relu]}}"},
    {"Section model", "heads", R"j({"type": "array", "items": {"$ref": "#/definitions/head"}})j",
     "[{name: digit, loss: softmax_cross_entropy}]"},
    {"Section model", "regularization",
     R"j({"type": "array", "items": {"$ref": "#/definitions/regularization"}})j",
     "[{variables: \"*/kernel\", l2: 0.0001}]"},
    {"Head", "labels", R"j({"anyOf": [{"type": "string"}, {"$ref": "#/definitions/integers"}]})j", "[0, 1]"},
    {"Head", "label_table", R"j({"type": "array", "items": {"$ref": "#/definitions/numbers"}})j",
     "[[1, 0], [0, 1]]"},
    {"Section optimizer", "groups", R"j({"type": "array", "items": {"$ref": "#/definitions/group"}})j",
     "[{variables: \"*/bias\", weight_decay: 0}]"},
    // A part of section summary; its title there is "Summary NAME".
    {"Section summary", "*", "", "true"},
};

// Texts and numbers without a default that says what is meant.
struct Example {
  std::string_view title, option, value;
};
constexpr Example kExamples[] = {
    {"", "base_directory", "/data"},
    {"", "plugins", "[libmine.so]"},
    {"", "time_limit", "12h"},
    {"Section warm_start", "checkpoint", "runs/first"},
    {"", "format", "csv"},
    {"", "stage_to", "/tmp/data"},
    {"Reader images", "path", "photos"},
    {"Reader text_files", "path", "mails"},
    {"Reader hdf5", "path", "data.h5"},
    {"Reader hdf5", "columns", "[energy]"},
    {"Reader hdf5", "groups", "\"sample_*\""},
    {"Reader npy", "path", "data.npz"},
    {"Reader npy", "features", "x.npy"},
    {"Reader npy", "labels", "y.npy"},
    {"Reader skip_gram", "path", "text.txt"},
    {"Reader text_tsv", "path", "texts.tsv"},
    {"Reader text_windows", "path", "text.txt"},
    {"Reader tfrecord", "path", "\"train-*.tfrecord\""},
    {"Reader webdataset", "path", "\"train-{000..127}.tar\""},
    {"Reader jsonl", "path", "data.jsonl"},
    {"Reader binary", "path", "data.bin"},
    {"", "path", "data.csv"},
    {"Reader idx", "images", "train-images-idx3-ubyte"},
    {"Reader idx", "labels", "train-labels-idx1-ubyte"},
    {"Reader tfrecord", "features", "image/encoded"},
    {"Reader tfrecord", "labels", "image/class/label"},
    {"", "features", "features"},
    {"", "labels", "labels"},
    {"", "delimiter", "\";\""},
    {"Reader csv", "decimal", "\",\""},
    {"Reader csv", "thousands", "\".\""},
    {"", "quote", "\"'\""},
    {"", "comment", "\"#\""},
    {"", "classes", "[cat, dog]"},
    {"", "extension", "txt"},
    {"", "input", "samples"},
    {"", "circular", "[all]"},
    {"", "adamw_for", "[\"*/embeddings\"]"},
    {"Layer negative_sampling", "counts", "vocabulary.txt"},
    {"", "vocabulary", "vocabulary.txt"},
    {"", "merges", "merges.txt"},
    {"", "padding_token", "<|endoftext|>"},
    {"", "split", "train"},
    {"", "vocabulary_split", "train"},
    {"", "index", "index.txt"},
    {"", "label_field", "label"},
    {"", "frozen", "[conv1]"},
    {"Head", "name", "digit"},
    {"", "inputs", "[conv1]"},
    {"", "shared_with", "dense1"},
    {"", "recompute", "part1"},
    {"", "output", "dense2"},
    {"", "head", "digit"},
    {"", "layer", "dense2"},
    {"", "variables", "\"*/kernel\""},
    {"", "layers", "[conv1]"},
    {"", "metric", "loss"},
    {"", "run_dir", "runs/first"},
    {"", "name", "mine"},
    {"", "label_separator", "\";\""},
    {"", "learning_rate", "0.001"},
    {"", "shape", "[8, 8, 1]"},
    {"", "units", "64"},
    {"", "filters", "16"},
    {"", "kernel", "3"},
    {"", "batch_size", "64"},
    {"", "epochs", "10"},
    {"", "rate", "0.5"},
    {"", "steps", "1000"},
    {"", "max_steps", "1000"},
    {"", "decay_steps", "1000"},
    {"", "total_steps", "1000"},
    {"", "every_steps", "100"},
    {"", "permutation", "[1, 0]"},
    {"", "classes", "10"},
    {"", "window", "5"},
};
// clang-format on

template <typename Entry>
bool is_about(const Entry& entry, std::string_view title, std::string_view option) {
  if (!entry.title.empty() && entry.title != title) return false;
  if (entry.option.starts_with('*')) return option.ends_with(entry.option.substr(1));
  return entry.option == option;
}

bool is_taken(const ParamSpec& option, const std::string& value) {
  const std::string subject, where;
  const ParamReader reader(option, subject, where);
  const Node node = parse_fallback(value);
  const auto reads = [&](auto read) {
    try {
      read();
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  switch (option.type) {
    case ParamType::integer:
      return reads([&] { reader.integer(node); });
    case ParamType::integers:
      return reads([&] { reader.list<std::int64_t>(node, &ParamReader::integer); });
    case ParamType::real:
      return reads([&] { reader.real(node); });
    case ParamType::reals:
      return reads([&] { reader.list<double>(node, &ParamReader::real); });
    case ParamType::node:
      return !takes_schedule(option) || reads([&] { plain_number(node, option, subject, where); });
    default:
      return true;  // texts are checked where they are used
  }
}

}  // namespace

const NodeForm* node_form(std::string_view title, const ParamSpec& option) {
  if (option.type != ParamType::node || takes_schedule(option)) return nullptr;
  for (const NodeForm& form : kForms)
    if (is_about(form, title, option.name)) return &form;
  LOCKSTEP_CHECK(false, "{}, {}: option_forms.cpp does not say what it takes", title, option.name);
  return nullptr;
}

std::string example_value(std::string_view title, const ParamSpec& option) {
  if (const NodeForm* const form = node_form(title, option)) return std::string(form->example);
  if (option.type == ParamType::boolean) return option.fallback == "true" ? "false" : "true";
  if (const std::vector<std::string_view> choices = option.range.choices(); !choices.empty()) {
    const auto other = std::ranges::find_if(choices, [&](auto choice) { return choice != option.fallback; });
    return std::string(other == choices.end() ? choices.front() : *other);
  }
  for (const Example& example : kExamples)
    if (is_about(example, title, option.name) && is_taken(option, std::string(example.value)))
      return std::string(example.value);
  if (option.fallback != "null" && option.fallback != kRequired && !option.fallback.empty())
    return std::string(option.fallback);
  const bool is_text = option.type == ParamType::string || option.type == ParamType::strings;
  for (const char* const value : {"10", "0.1", "0.5", "1", "2", "1000", "0"})
    if (!is_text && is_taken(option, value)) return value;
  return option.name == "values" ? "[0.1, 0.01]" : std::string(option.name);
}

}  // namespace lockstep
