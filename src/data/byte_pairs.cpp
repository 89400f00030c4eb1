// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/byte_pairs.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <queue>

#include "core/error.h"
#include "data/gpt2_words.h"
#include "data/utf8.h"

namespace lockstep {

namespace {

/// Longer words are merged with a heap: a scan of all pairs for each merge would take the square of the time.
constexpr std::size_t kShortWord = 64;

/// GPT-2's bytes_to_unicode: visible bytes are the character of that number; the others follow U+0100.
constexpr bool is_visible(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}
constexpr char32_t kFirstInvisible = 0x100;

constexpr auto kCharacters = [] {
  std::array<char32_t, 256> characters{};
  char32_t next = kFirstInvisible;
  for (int byte = 0; byte < 256; ++byte)
    characters[static_cast<std::size_t>(byte)] = is_visible(byte) ? static_cast<char32_t>(byte) : next++;
  return characters;
}();

/// The bytes of visible characters; nothing if another character is among them.
std::optional<std::string> bytes_of_visible(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const auto found = std::ranges::find(kCharacters, take_code_point(text));
    if (found == kCharacters.end()) return std::nullopt;
    bytes += static_cast<char>(found - kCharacters.begin());
  }
  return bytes;
}

/// Calls take(id) for each token of `matcher` in `text`, and rest(piece) for each piece between them.
template <typename Rest>
void split(std::string_view text, const TokenMatcher& matcher, FunctionRef<void(std::int32_t)> take,
           Rest rest) {
  while (!text.empty()) {
    const TokenMatcher::Match match = matcher.find(text);
    if (match.at > 0) rest(text.substr(0, match.at));
    if (match.bytes == 0) return;
    take(match.id);
    text.remove_prefix(match.at + match.bytes);
  }
}

}  // namespace

std::string visible_bytes(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) append_utf8(text, kCharacters[static_cast<unsigned char>(byte)]);
  return text;
}

void BytePairs::Ranks::reserve(std::size_t count) {
  const std::size_t slots = std::bit_ceil(2 * count + 2);
  slots_.assign(slots, Slot());
  shift_ = 64 - std::countr_zero(slots);
}

std::size_t BytePairs::Ranks::first_slot(std::int32_t left, std::int32_t right) const {
  const auto key = static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
  return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15U) >> shift_);  // Fibonacci hashing
}

bool BytePairs::Ranks::add(std::int32_t left, std::int32_t right, std::int32_t rank) {
  std::size_t at = first_slot(left, right);
  for (; slots_[at].left >= 0; at = (at + 1) & (slots_.size() - 1))
    if (slots_[at].left == left && slots_[at].right == right) return false;
  slots_[at] = {left, right, rank};
  return true;
}

std::int32_t BytePairs::Ranks::of(std::int32_t left, std::int32_t right) const {
  std::size_t at = first_slot(left, right);
  for (; slots_[at].left >= 0; at = (at + 1) & (slots_.size() - 1))
    if (slots_[at].left == left && slots_[at].right == right) return slots_[at].rank;
  return kNone;
}

struct BytePairs::Scratch {
  /// A token of a long word, in a list.
  struct Symbol {
    std::int32_t id;
    std::int32_t before, after;  ///< -1: none
  };
  struct Merge {
    std::int32_t rank, at;
    friend bool operator>(const Merge& a, const Merge& b) {
      return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
    }
  };
  std::string text;
  std::vector<std::int32_t> ids, ranks;
  std::vector<Symbol> symbols;
};

BytePairs::BytePairs(BytePairTable table, const std::string& where) : table_(std::move(table)) {
  set_bytes(where);
  set_merges(where);
  special_.assign(table_.tokens.size(), false);
  for (const BytePairTable::Added& one : table_.added) {
    special_[static_cast<std::size_t>(one.id)] = one.special;
    (one.normalized ? added_then_ : added_first_)
        .add(table_.tokens[static_cast<std::size_t>(one.id)], one.id);
  }
}

void BytePairs::set_bytes(const std::string& where) {
  byte_ids_.fill(-1);
  std::vector<bool> of_model(table_.tokens.size(), true);
  for (const BytePairTable::Added& one : table_.added)
    of_model[static_cast<std::size_t>(one.id)] = one.in_vocabulary;
  for (std::size_t id = 0; id < table_.tokens.size(); ++id) {
    const std::string& token = table_.tokens[id];
    const std::optional<std::string> bytes = bytes_of_visible(token);
    bytes_.push_back(bytes.value_or(token));
    if (!bytes || !of_model[id]) continue;
    if (bytes->size() == 1)
      byte_ids_[static_cast<unsigned char>(bytes->front())] = static_cast<std::int32_t>(id);
    if (table_.ignore_merges) whole_words_.emplace(*bytes, static_cast<std::int32_t>(id));
  }
  const auto missing = std::ranges::find(byte_ids_, -1);
  if (missing == byte_ids_.end()) return;
  const auto byte = static_cast<char>(missing - byte_ids_.begin());
  throw Error(ErrorKind::data,
              fmt::format("the vocabulary has no token for the byte 0x{:02X} ('{}')",
                          static_cast<unsigned char>(byte), visible_bytes({&byte, 1})),
              where,
              "Byte-level BPE has a token for each of the 256 bytes. A tokenizer that is trained with the "
              "initial alphabet of ByteLevel has them.");
}

void BytePairs::set_merges(const std::string& where) {
  TokenIds ids;
  for (std::size_t id = 0; id < table_.tokens.size(); ++id)
    ids.emplace(table_.tokens[id], static_cast<std::int32_t>(id));
  for (const BytePairTable::Added& one : table_.added)
    if (!one.in_vocabulary) ids.erase(table_.tokens[static_cast<std::size_t>(one.id)]);
  ranks_.reserve(table_.merges.size());
  for (const auto& [left, right] : table_.merges) {
    const std::string &a = table_.tokens[static_cast<std::size_t>(left)],
                      &b = table_.tokens[static_cast<std::size_t>(right)];
    const auto found = ids.find(a + b);
    const auto fail = [&](std::string_view what) {
      throw Error(ErrorKind::data,
                  fmt::format("merge {}, of '{}' and '{}', {}", merged_.size() + 1, a, b, what), where,
                  "The vocabulary and the merges must be of one tokenizer.");
    };
    if (found == ids.end()) fail(fmt::format("makes '{}', which is not in the vocabulary", a + b));
    if (!ranks_.add(left, right, static_cast<std::int32_t>(merged_.size()))) fail("is there twice");
    merged_.push_back(found->second);
  }
}

void BytePairs::encode(std::string_view text, FunctionRef<void(std::int32_t)> take) const {
  split(text, added_first_, take, [&](std::string_view piece) {
    split(piece, added_then_, take, [&](std::string_view rest) { encode_between(rest, take); });
  });
}

void BytePairs::encode_between(std::string_view text, FunctionRef<void(std::int32_t)> take) const {
  thread_local Scratch scratch;
  if (table_.add_prefix_space && !text.starts_with(' ')) {
    scratch.text.assign(1, ' ').append(text);
    text = scratch.text;
  }
  while (!text.empty()) {
    const std::size_t bytes = gpt2_word_bytes(text);
    encode_word(text.substr(0, bytes), scratch, take);
    text.remove_prefix(bytes);
  }
}

void BytePairs::encode_word(std::string_view word, Scratch& scratch,
                            FunctionRef<void(std::int32_t)> take) const {
  if (table_.ignore_merges)
    if (const auto found = whole_words_.find(word); found != whole_words_.end()) return take(found->second);
  std::vector<std::int32_t>& ids = scratch.ids;
  ids.resize(word.size());
  std::ranges::transform(word, ids.begin(),
                         [&](char byte) { return byte_ids_[static_cast<unsigned char>(byte)]; });
  word.size() <= kShortWord ? merge_short(ids, scratch) : merge_long(ids, scratch);
  for (const std::int32_t id : ids) take(id);
}

void BytePairs::merge_short(std::vector<std::int32_t>& ids, Scratch& scratch) const {
  std::vector<std::int32_t>& ranks = scratch.ranks;  // of the pairs (i, i + 1)
  ranks.resize(ids.size() - 1);
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = ranks_.of(ids[i], ids[i + 1]);
  while (!ranks.empty()) {
    const auto best = std::ranges::min_element(ranks);
    if (*best == Ranks::kNone) return;
    const auto i = static_cast<std::size_t>(best - ranks.begin());
    ids[i] = merged_[static_cast<std::size_t>(*best)];
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    ranks.erase(best);
    if (i < ranks.size()) ranks[i] = ranks_.of(ids[i], ids[i + 1]);
    if (i > 0) ranks[i - 1] = ranks_.of(ids[i - 1], ids[i]);
  }
}

void BytePairs::merge_long(std::vector<std::int32_t>& ids, Scratch& scratch) const {
  using Merge = Scratch::Merge;
  std::vector<Scratch::Symbol>& symbols = scratch.symbols;
  const auto count = static_cast<std::int32_t>(ids.size());
  symbols.clear();
  for (std::int32_t i = 0; i < count; ++i)
    symbols.push_back({ids[static_cast<std::size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1});
  const auto symbol = [&](std::int32_t at) -> Scratch::Symbol& {
    return symbols[static_cast<std::size_t>(at)];
  };
  std::priority_queue<Merge, std::vector<Merge>, std::greater<>> merges;
  const auto rank_at = [&](std::int32_t at) {
    const std::int32_t after = symbol(at).after;
    return after < 0 ? Ranks::kNone : ranks_.of(symbol(at).id, symbol(after).id);
  };
  const auto push = [&](std::int32_t at) {
    if (at < 0) return;
    if (const std::int32_t rank = rank_at(at); rank != Ranks::kNone) merges.push({rank, at});
  };
  for (std::int32_t i = 0; i < count; ++i) push(i);
  while (!merges.empty()) {
    const Merge best = merges.top();
    merges.pop();
    if (symbol(best.at).id < 0 || rank_at(best.at) != best.rank)
      continue;  // one of both was merged meanwhile
    Scratch::Symbol &left = symbol(best.at), &right = symbol(left.after);
    left.id = merged_[static_cast<std::size_t>(best.rank)];
    left.after = right.after;
    if (right.after >= 0) symbol(right.after).before = best.at;
    right.id = -1;
    push(left.before);
    push(best.at);
  }
  ids.clear();
  for (std::int32_t at = 0; at >= 0; at = symbol(at).after) ids.push_back(symbol(at).id);
}

}  // namespace lockstep
