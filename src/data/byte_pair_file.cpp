// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/byte_pair_file.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "data/utf8.h"
#include "io/input_file.h"
#include "io/json.h"

namespace lockstep {

namespace {

/// The largest known vocabularies take half of it.
constexpr std::size_t kMostBytes = std::size_t{64} << 20;
constexpr std::string_view kEndOfText = "<|endoftext|>";
constexpr const char* kSupported =
    "Supported is byte-level BPE as GPT-2 has it: model BPE, pre_tokenizer and decoder ByteLevel with its "
    "regular expression, without a normalizer and without tokens that a post_processor adds.";

[[noreturn]] void fail(std::string what, const std::string& where, const char* advice = kSupported) {
  throw Error(ErrorKind::data, std::move(what), where, advice);
}

std::string whole_file(const std::string& path) {
  InputFile file(path);
  std::string text;
  std::array<char, 1 << 16> block{};
  for (std::size_t got = block.size(); got == block.size();) {
    got = file.read(block.data(), block.size());
    text.append(block.data(), got);
    if (text.size() > kMostBytes)
      fail(fmt::format("is larger than {} MiB", kMostBytes >> 20), path, "Tokenizers' files are smaller.");
  }
  return text;
}

Json parsed(std::string_view text, const std::string& where) {
  try {
    Json json = Json::parse(text);
    if (!json.is_object()) fail("is no JSON object", where);
    return json;
  } catch (const JsonError& error) {
    fail(fmt::format("is no JSON: {}", error.what()), where,
         "It should be the file tokenizer.json or vocab.json of a tokenizer.");
  }
}

/// The part `name` of a tokenizer, for messages: "the normalizer is 'NFC'".
std::string described(std::string_view name, const Json& part) {
  const Json& type = part["type"];
  return type.is_string() ? fmt::format("the {} is '{}'", name, type.string())
                          : fmt::format("there is a {}: {}", name, part.dump().substr(0, 60));
}

/// Refuses members that have a value and are not known.
void refuse_others(const Json& object, std::span<const std::string_view> known, std::string_view of,
                   const std::string& where) {
  for (const Json::Member& member : object.items())
    if (!member.value.is_null() && std::ranges::find(known, member.name) == known.end())
      fail(fmt::format("{} has '{}', which is not known", of, member.name), where);
}

void require_absent(const Json& tokenizer, std::string_view name, const std::string& where,
                    const char* advice = kSupported) {
  if (const Json& part = tokenizer[name]; !part.is_null()) fail(described(name, part), where, advice);
}

bool flag(const Json& object, std::string_view name, bool otherwise, const std::string& where) {
  const Json& value = object[name];
  if (value.is_null()) return otherwise;
  try {
    return value.get<bool>();
  } catch (const JsonError&) {
    fail(fmt::format("'{}' is neither true nor false", name), where);
  }
}

/// pre_tokenizer, decoder: ByteLevel.
const Json& byte_level(const Json& tokenizer, std::string_view name, const std::string& where) {
  const Json& part = tokenizer[name];
  if (part.is_null()) fail(fmt::format("there is no {}", name), where);
  if (!(part["type"] == Json("ByteLevel"))) fail(described(name, part), where);
  constexpr std::string_view kKnown[] = {"type", "add_prefix_space", "trim_offsets", "use_regex"};
  refuse_others(part, kKnown, name, where);
  return part;
}

/// Tokens and their ids while a file is read.
class TokenList {
 public:
  TokenList(std::size_t count, const std::string& where)
      : tokens_(count), filled_(count, false), where_(where) {}

  void add(const std::string& token, std::int64_t id) {
    if (token.empty()) fail(fmt::format("the token with id {} is empty", id), where_, kOneTokenizer);
    if (id >= std::ssize(tokens_))
      fail(fmt::format(
               "'{}' has the id {}, but there are {} tokens: ids are the numbers from 0 on, without gaps",
               token, id, tokens_.size()),
           where_, kOneTokenizer);
    const auto at = static_cast<std::size_t>(id);
    if (filled_[at])
      fail(fmt::format("'{}' and '{}' have the id {}", tokens_[at], token, id), where_, kOneTokenizer);
    filled_[at] = true;
    tokens_[at] = token;
  }
  std::vector<std::string> take() { return std::move(tokens_); }

 private:
  static constexpr const char* kOneTokenizer =
      "The file is damaged, or put together from several tokenizers.";
  std::vector<std::string> tokens_;
  std::vector<bool> filled_;
  const std::string& where_;
};

using Ids = std::unordered_map<std::string, std::int32_t, WordHash, std::equal_to<>>;

std::int32_t id_from(const Json& value, std::string_view token, const std::string& where) {
  constexpr std::uint64_t kMostIds = std::uint64_t{1} << 24;
  if (!value.is_unsigned() || value.get<std::uint64_t>() >= kMostIds)
    fail(fmt::format("the id of '{}' is {}, not a whole number from 0 to {}", token,
                     value.dump().substr(0, 40), kMostIds - 1),
         where);
  return value.get<std::int32_t>();
}

Ids ids_of(const Json& vocabulary, const std::string& where) {
  if (!vocabulary.is_object() || vocabulary.empty())
    fail("the vocabulary is no object of tokens and their ids", where);
  Ids ids;
  for (const Json::Member& member : vocabulary.items())
    ids.emplace(member.name, id_from(member.value, member.name, where));
  return ids;
}

std::int32_t id_of_part(const Ids& ids, std::string_view token, std::string_view merge,
                        const std::string& where) {
  const auto found = ids.find(token);
  if (found == ids.end())
    fail(fmt::format("the merge '{}' is of '{}', which is not in the vocabulary", merge, token), where,
         "The vocabulary and the merges must be of one tokenizer.");
  return found->second;
}

/// Adds a merge as merges.txt has it: two tokens with a blank between them.
void add_merge(const Ids& ids, std::string_view merge, BytePairTable& to, const std::string& where) {
  const std::size_t blank = merge.find(' ');
  if (blank == std::string_view::npos || merge.find(' ', blank + 1) != std::string_view::npos)
    fail(fmt::format("the merge '{}' is not two tokens with a blank between them", merge.substr(0, 60)),
         where, "A line of merges.txt has two tokens.");
  to.merges.emplace_back(id_of_part(ids, merge.substr(0, blank), merge, where),
                         id_of_part(ids, merge.substr(blank + 1), merge, where));
}

void add_merges(const Json& merges, const Ids& ids, BytePairTable& to, const std::string& where) {
  if (!merges.is_array()) fail("the merges of the model are no list", where);
  for (const Json& merge : merges) {
    const bool is_pair =
        merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string();
    if (!is_pair && !merge.is_string())
      fail(fmt::format("the merge {} is not two tokens", merge.dump().substr(0, 60)), where);
    add_merge(ids, is_pair ? merge[0].string() + " " + merge[1].string() : merge.string(), to, where);
  }
}

struct AddedToken {
  std::string text;
  BytePairTable::Added token;
};

AddedToken added_from(const Json& json, const Ids& ids, const std::string& where) {
  const Json& content = json["content"];
  if (!content.is_string())
    fail(fmt::format("an added token has no content: {}", json.dump().substr(0, 60)), where);
  AddedToken added{content.string(), {}};
  added.token.id = id_from(json["id"], added.text, where);
  added.token.special = flag(json, "special", false, where);
  added.token.normalized = flag(json, "normalized", true, where);
  const auto found = ids.find(added.text);
  added.token.in_vocabulary = found != ids.end();
  if (added.token.in_vocabulary && found->second != added.token.id)
    fail(fmt::format("the added token '{}' has the id {}, in the vocabulary {}", added.text, added.token.id,
                     found->second),
         where, "The file is damaged, or put together from several tokenizers.");
  for (const std::string_view name : {"single_word", "lstrip", "rstrip"})
    if (flag(json, name, false, where))
      fail(fmt::format("the added token '{}' has {}", added.text, name), where,
           "Supported are added tokens that are found wherever they are, without the blanks next to them.");
  return added;
}

void require_bpe(const Json& model, const std::string& where) {
  if (!model["type"].is_null() && !(model["type"] == Json("BPE"))) fail(described("model", model), where);
  constexpr std::string_view kKnown[] = {"type",
                                         "dropout",
                                         "unk_token",
                                         "continuing_subword_prefix",
                                         "end_of_word_suffix",
                                         "fuse_unk",
                                         "byte_fallback",
                                         "ignore_merges",
                                         "vocab",
                                         "merges"};
  refuse_others(model, kKnown, "the model", where);
  if (const Json& dropout = model["dropout"];
      !dropout.is_null() && !(dropout.is_number() && dropout.get<double>() == 0))
    fail(fmt::format("the model has a dropout of {}", dropout.dump().substr(0, 20)), where,
         "The same text has other ids each time with it: set it to null.");
  for (const std::string_view name : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (const Json& mark = model[name]; !mark.is_null() && !(mark == Json("")))
      fail(fmt::format("the model has a {}: {}", name, mark.dump().substr(0, 20)), where);
}

BytePairTable table_from(const Json& tokenizer, const std::string& where) {
  constexpr std::string_view kKnown[] = {"version",        "truncation", "padding",
                                         "added_tokens",   "normalizer", "pre_tokenizer",
                                         "post_processor", "decoder",    "model"};
  refuse_others(tokenizer, kKnown, "the tokenizer", where);
  const Json& model = tokenizer["model"];
  require_bpe(model, where);
  require_absent(tokenizer, "normalizer", where);
  for (const std::string_view name : {"truncation", "padding"})
    require_absent(tokenizer, name, where, "Set it to null: lengths and padding are options of the reader.");
  const Json& words = byte_level(tokenizer, "pre_tokenizer", where);
  if (!flag(words, "use_regex", true, where)) fail("the pre_tokenizer has use_regex: false", where);
  byte_level(tokenizer, "decoder", where);
  if (!tokenizer["post_processor"].is_null()) byte_level(tokenizer, "post_processor", where);

  BytePairTable table;
  table.add_prefix_space = flag(words, "add_prefix_space", true, where);
  table.ignore_merges = flag(model, "ignore_merges", false, where);
  const Ids ids = ids_of(model["vocab"], where);
  std::vector<AddedToken> added;
  if (const Json& list = tokenizer["added_tokens"]; !list.is_null()) {
    if (!list.is_array()) fail("added_tokens is no list", where);
    for (const Json& one : list) added.push_back(added_from(one, ids, where));
  }
  const auto more =
      std::ranges::count_if(added, [](const AddedToken& one) { return !one.token.in_vocabulary; });
  TokenList tokens(ids.size() + static_cast<std::size_t>(more), where);
  for (const auto& [token, id] : ids) tokens.add(token, id);
  for (const AddedToken& one : added) {
    if (!one.token.in_vocabulary) tokens.add(one.text, one.token.id);
    table.added.push_back(one.token);
  }
  table.tokens = tokens.take();
  add_merges(model["merges"], ids, table, where);
  return table;
}

BytePairTable table_from(const Json& vocabulary, const std::string& where, const std::string& merges) {
  BytePairTable table;
  const Ids ids = ids_of(vocabulary, where);
  TokenList tokens(ids.size(), where);
  for (const auto& [token, id] : ids) tokens.add(token, id);
  table.tokens = tokens.take();
  if (const auto end = ids.find(kEndOfText); end != ids.end())
    table.added.push_back({.id = end->second, .special = true, .normalized = false, .in_vocabulary = true});
  InputFile file(merges);
  LineReader lines(file);
  for (std::string_view line; lines.next(line);) {
    require_utf8(line, merges, lines.line_number());
    if (line.starts_with("#version")) continue;
    add_merge(ids, line, table, fmt::format("{}, line {}", merges, lines.line_number()));
  }
  return table;
}

}  // namespace

BytePairs read_byte_pairs(const std::string& path, const std::optional<std::string>& merges) {
  const Json json = parsed(whole_file(path), path);
  const bool is_tokenizer = json["model"].is_object();
  if (is_tokenizer && merges)
    fail("has merges of its own", path, "Leave out the option merges: it belongs to a file vocab.json.");
  if (is_tokenizer) return BytePairs(table_from(json, path), path);
  if (!merges)
    fail("is a vocabulary without merges", path,
         "Give the tokenizer's file merges.txt in the option merges, or a tokenizer.json.");
  return BytePairs(table_from(json, path, *merges), *merges);
}

BytePairs byte_pairs_from(std::string_view text, const std::string& where) {
  const Json json = parsed(text, where);
  if (!json["model"].is_object()) fail("there is no model", where);
  return BytePairs(table_from(json, where), where);
}

std::string tokenizer_json(const BytePairTable& table) {
  const auto quoted = [](const std::string& text) { return Json(text).dump(); };
  const auto token = [&](std::int32_t id) -> const std::string& {
    return table.tokens[static_cast<std::size_t>(id)];
  };
  std::string text =
      "{\n\"version\": \"1.0\",\n\"truncation\": null,\n\"padding\": null,\n\"added_tokens\": [";
  std::vector<bool> only_added(table.tokens.size(), false);
  const char* comma = "";
  for (const BytePairTable::Added& one : table.added) {
    if (!one.in_vocabulary) only_added[static_cast<std::size_t>(one.id)] = true;
    const Json json = {{"id", one.id},          {"content", token(one.id)}, {"single_word", false},
                       {"lstrip", false},       {"rstrip", false},          {"normalized", one.normalized},
                       {"special", one.special}};
    text += fmt::format("{}\n{}", std::exchange(comma, ","), json.dump());
  }
  const Json words = {{"type", "ByteLevel"},
                      {"add_prefix_space", table.add_prefix_space},
                      {"trim_offsets", true},
                      {"use_regex", true}};
  text += fmt::format(
      "\n],\n\"normalizer\": null,\n\"pre_tokenizer\": {},\n\"post_processor\": null,\n\"decoder\": {},\n"
      "\"model\": {{\n\"type\": \"BPE\",\n\"dropout\": null,\n\"unk_token\": null,\n"
      "\"continuing_subword_prefix\": null,\n\"end_of_word_suffix\": null,\n\"fuse_unk\": false,\n"
      "\"byte_fallback\": false,\n\"ignore_merges\": {},\n\"vocab\": {{",
      words.dump(), words.dump(), table.ignore_merges);
  comma = "";
  for (std::size_t id = 0; id < table.tokens.size(); ++id)
    if (!only_added[id])
      text += fmt::format("{}\n{}: {}", std::exchange(comma, ","), quoted(table.tokens[id]), id);
  text += "\n},\n\"merges\": [";
  comma = "";
  for (const auto& [left, right] : table.merges)
    text += fmt::format("{}\n{}", std::exchange(comma, ","), quoted(token(left) + " " + token(right)));
  return text + "\n]\n}\n}\n";
}

}  // namespace lockstep
