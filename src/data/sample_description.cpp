// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/sample_description.h"

#include <algorithm>

#include "core/device.h"
#include "core/error.h"
#include "data/byte_pair_file.h"
#include "data/data_options.h"
#include "data/reader_dataset.h"
#include "data/table_info.h"
#include "data/text_info.h"
#include "data/utf8.h"
#include "io/json.h"

namespace lockstep {

namespace {

constexpr const char* kFormat = "lockstep samples";
constexpr std::int64_t kVersion = 1;
constexpr DType kTypes[] = {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32,
                            DType::i64, DType::u8,  DType::i8,   DType::i16, DType::u16};
constexpr std::pair<LabelKind, const char*> kLabels[] = {
    {LabelKind::none, "none"}, {LabelKind::indices, "indices"}, {LabelKind::rows, "rows"}};

Json json_of(const std::string& text) {
  if (first_invalid_utf8(text) == std::string::npos) return text;
  Json bytes = Json::array();
  for (const char byte : text) bytes.push_back(static_cast<std::int64_t>(static_cast<unsigned char>(byte)));
  return bytes;
}

std::string text_from(const Json& json) {
  if (json.is_string()) return json.string();
  std::string text;
  for (const Json& byte : json) text.push_back(static_cast<char>(byte.get<int>()));
  return text;
}

Json json_of(const std::vector<std::string>& texts) {
  Json all = Json::array();
  for (const std::string& text : texts) all.push_back(json_of(text));
  return all;
}

std::vector<std::string> texts_from(const Json& json) {
  std::vector<std::string> texts;
  for (const Json& item : json) texts.push_back(text_from(item));
  return texts;
}

Json json_of(const std::vector<TableInfo::Column>& columns) {
  Json all = Json::array();
  for (const TableInfo::Column& column : columns) {
    Json one = {{"index", column.index}, {"name", json_of(column.name)}};
    if (!column.values.empty()) one["values"] = json_of(column.values);
    all.push_back(std::move(one));
  }
  return all;
}

std::vector<TableInfo::Column> columns_from(const Json& json) {
  std::vector<TableInfo::Column> columns;
  for (const Json& one : json)
    columns.push_back({.index = one.at("index").get<std::int64_t>(),
                       .name = text_from(one.at("name")),
                       .values = texts_from(one["values"])});
  return columns;
}

Json json_of(const TextInfo& text) {
  if (text.byte_pairs != nullptr)
    return {{"tokens", "bpe"},
            {"tokenizer", tokenizer_json(text.byte_pairs->table())},
            {"padding", text.padding_id},
            {"next_token_labels", text.next_token_labels}};
  Json words = Json::array();
  for (const Vocabulary::Word& word : text.vocabulary.words()) {
    Json one = Json::array();
    one.push_back(json_of(word.text));
    one.push_back(word.count);
    words.push_back(std::move(one));
  }
  return {{"tokens", text.tokenizer.unit == TokenUnit::words ? "words" : "characters"},
          {"lower_case", text.tokenizer.lower_case},
          {"next_token_labels", text.next_token_labels},
          {"words", std::move(words)}};
}

TextInfo byte_pair_text_from(const Json& json, const std::string& where) {
  TextInfo text =
      text_info_of(std::make_shared<const BytePairs>(byte_pairs_from(json.at("tokenizer").string(), where)));
  text.padding_id = json.at("padding").get<std::int32_t>();
  if (text.padding_id < 0 || text.padding_id >= text.vocabulary.size())
    throw JsonError(fmt::format("the padding {} is no token", text.padding_id));
  text.next_token_labels = json.at("next_token_labels").get<bool>();
  return text;
}

std::shared_ptr<const TextInfo> text_info_from(const Json& json, const std::string& where) {
  if (json.at("tokens").string() == "bpe")
    return std::make_shared<const TextInfo>(byte_pair_text_from(json, where));
  std::vector<Vocabulary::Word> words;
  for (const Json& word : json.at("words")) {
    if (word.size() != 2) throw JsonError("a word has no count");
    words.push_back({text_from(*word.begin()), (word.begin() + 1)->get<std::int64_t>()});
  }
  return std::make_shared<const TextInfo>(TextInfo{
      .tokenizer = {.unit = json.at("tokens").string() == "words" ? TokenUnit::words : TokenUnit::characters,
                    .lower_case = json.at("lower_case").get<bool>()},
      .vocabulary = Vocabulary::of_words(std::move(words)),
      .next_token_labels = json.at("next_token_labels").get<bool>()});
}

Json json_of(const DatasetPart& part) {
  const ReaderDataset& data = *part.data;
  const auto extents = data.stored_shape().extents();
  Json json = {
      {"name", part.name},
      {"shape", std::vector<std::int64_t>(extents.begin(), extents.end())},
      {"type", name_of(data.feature_dtype())},
      {"labels",
       std::ranges::find(kLabels, data.label_kind(), &std::pair<LabelKind, const char*>::first)->second},
      {"label_columns", data.num_label_columns()}};
  if (!data.class_names().empty()) json["classes"] = json_of(data.class_names());
  if (const SequenceForm* const form = data.sequence())
    json["sequence"] = {{"mark", form->ends_in_nan() ? "nan" : "zeros"}, {"padding", form->padding}};
  if (const TableInfo* const table = data.table())
    json["table"] = {{"columns", table->num_columns},
                     {"features", json_of(table->features)},
                     {"labels", json_of(table->labels)}};
  if (data.text() != nullptr) {
    json["text"] = json_of(*data.text());
    json["text"]["of"] = data.stored().parts().text != nullptr ? "reader" : "transform";
  }
  return json;
}

SampleDescription::Part part_from(const Json& json, const std::string& where) {
  SampleDescription::Part part;
  part.name = json.at("name").string();
  part.shape = Shape(json.at("shape").get<std::vector<std::int64_t>>());
  const std::string type = json.at("type").string(), labels = json.at("labels").string();
  const auto of_type =
      std::ranges::find(kTypes, std::string_view(type), [](DType one) { return name_of(one); });
  const auto of_labels = std::ranges::find(kLabels, labels, &std::pair<LabelKind, const char*>::second);
  if (of_type == std::end(kTypes)) throw JsonError(fmt::format("unknown type '{}'", type));
  if (of_labels == std::end(kLabels)) throw JsonError(fmt::format("unknown labels '{}'", labels));
  part.type = *of_type;
  part.labels = of_labels->first;
  part.label_columns = json.at("label_columns").get<std::int64_t>();
  part.class_names = texts_from(json["classes"]);
  if (const Json* const form = json.find("sequence"))
    part.sequence = {
        .mark = form->at("mark").string() == "nan" ? SequenceForm::Mark::nan : SequenceForm::Mark::zeros,
        .padding = form->at("padding").get<float>()};
  if (const Json* const table = json.find("table")) {
    TableInfo info{.num_columns = table->at("columns").get<std::int64_t>(),
                   .features = columns_from(table->at("features")),
                   .labels = columns_from(table->at("labels"))};
    part.table = std::make_shared<const TableInfo>(std::move(info));
  }
  if (const Json* const text = json.find("text")) {
    part.text = text_info_from(*text, where);
    part.reads_text = text->at("of").string() == "reader";
  }
  return part;
}

}  // namespace

bool SampleDescription::fits(const DataOptions& options) const {
  const std::vector<const DataInput*> sets = sets_of(options);
  return std::ranges::equal(parts, sets,
                            [](const Part& part, const DataInput* set) { return part.name == set->name; });
}

DatasetParts SampleDescription::empty_sample(std::size_t number) const {
  const Part& part = parts[number];
  DatasetParts made;
  made.source = "the training data, which the checkpoint describes";
  made.record_word = "sample";
  made.size = 1;
  made.feature_shape = part.shape;
  made.feature_dtype = part.type;
  made.num_label_columns = part.label_columns;
  made.label_kind = part.labels;
  made.features = Buffer(cpu_device(), static_cast<std::size_t>(made.sample_bytes()));
  std::fill_n(static_cast<char*>(made.features.data()), made.sample_bytes(), '\0');
  const auto labels = static_cast<std::size_t>(part.label_columns);
  if (part.labels == LabelKind::indices) made.label_indices.assign(labels, 0);
  if (part.labels == LabelKind::rows) made.label_rows.assign(labels, 0);
  made.class_names = part.class_names;
  made.sequence = part.sequence;
  made.table = part.table;
  if (part.reads_text) made.text = part.text;
  return made;
}

std::string sample_description_text(const Dataset& data) {
  Json parts = Json::array();
  for (const DatasetPart& part : data.parts()) parts.push_back(json_of(part));
  const Json all = {
      {"format", kFormat}, {"version", kVersion}, {"samples", data.size()}, {"parts", std::move(parts)}};
  return all.dump() + "\n";
}

SampleDescription sample_description(std::string_view text, const std::string& where) {
  try {
    const Json json = Json::parse(text);
    if (json.at("format").string() != kFormat || json.at("version").get<std::int64_t>() != kVersion)
      throw Error(ErrorKind::checkpoint, "the description of the samples has another format", where,
                  "Use the version of Lockstep that wrote it, or a newer one.");
    SampleDescription description{.samples = json.at("samples").get<std::int64_t>()};
    for (const Json& part : json.at("parts")) description.parts.push_back(part_from(part, where));
    return description;
  } catch (const JsonError& error) {
    throw Error(ErrorKind::checkpoint,
                fmt::format("the description of the samples cannot be read: {}", error.what()), where,
                "The file is damaged: use an older checkpoint.");
  }
}

}  // namespace lockstep
