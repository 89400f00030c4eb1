// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The format of synonyms.txt; the head of that file describes it.
#include <algorithm>
#include <map>

#include "config/synonyms.h"
#include "config/synonyms_text.h"
#include "core/error.h"

namespace lockstep {

namespace {

constexpr std::string_view kArrow = " -> ", kColon = ": ";

std::string_view without_indent(std::string_view line) {
  return line.substr(std::min(line.find_first_not_of(' '), line.size()));
}

/// Parses one text; used once.
class SynonymParser {
 public:
  SynonymTable parse(std::string_view text) {
    while (!text.empty()) {
      const auto end = std::min(text.find('\n'), text.size());
      add_line(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    end_entry();
    return std::move(table_);
  }

 private:
  /// A line of the file. An indented one belongs to the entry above.
  void add_line(std::string_view line) {
    ++line_;
    if (line.starts_with(' ')) {
      require(!entry_.empty(), "continues nothing");
      entry_ += ' ';
      entry_ += without_indent(line);
      return;
    }
    end_entry();
    if (line.starts_with('#')) return;
    entry_ = line;
    first_line_ = line_;
  }

  void end_entry() {
    if (entry_.empty()) return;
    const std::string_view entry = table_.lines.emplace_back(std::exchange(entry_, {}));
    if (entry.front() == '[')
      begin_place(entry);
    else if (entry.front() == '@')
      add_label(entry);
    else
      add_synonyms(entry);
  }

  void begin_place(std::string_view entry) {
    require(entry.size() > 2 && entry.back() == ']', "a place is [PLACE]");
    place_ = entry.substr(1, entry.size() - 2);
  }

  void add_label(std::string_view entry) {
    const auto colon = entry.find(kColon);
    require(colon != entry.npos, "a label is @LABEL: ADVICE");
    const bool is_new = labels_.emplace(entry.substr(0, colon), entry.substr(colon + kColon.size())).second;
    require(is_new, "the label stands above already");
  }

  /// "words -> name", "words -> name: advice" or "words: advice".
  void add_synonyms(std::string_view entry) {
    require(!place_.empty(), "a [PLACE] must come first");
    const auto arrow = entry.find(kArrow), colon = entry.find(kColon, arrow < entry.size() ? arrow : 0);
    require(arrow != entry.npos || colon != entry.npos, "it is neither 'words -> name' nor 'words: advice'");
    const auto end_of_words = std::min(arrow, colon);
    std::string_view words = entry.substr(0, end_of_words);
    Synonym synonym{place_, {}, {}, {}};
    if (arrow != entry.npos)
      synonym.name = entry.substr(arrow + kArrow.size(), colon - arrow - kArrow.size());
    if (colon != entry.npos) synonym.advice = advice(entry.substr(colon + kColon.size()));
    require(synonym.name.find(' ') == synonym.name.npos, "a name has no blanks");
    for (std::size_t end = 0; !words.empty(); words.remove_prefix(std::min(end + 1, words.size()))) {
      end = std::min(words.find(' '), words.size());
      synonym.word = words.substr(0, end);
      require(synonym.word == plain_word(synonym.word) && end > 0,
              "a word has lower case, without _ - and dots, and one blank follows it");
      table_.synonyms.push_back(synonym);
    }
  }

  std::string_view advice(std::string_view text) const {
    if (!text.starts_with('@')) return text;
    const auto found = labels_.find(text);
    require(found != labels_.end(), "the label is not defined above");
    return found->second;
  }

  void require(bool condition, const char* what) const {
    LOCKSTEP_CHECK(condition, "synonyms.txt:{}: {}", first_line_, what);
  }

  SynonymTable table_;
  std::map<std::string_view, std::string_view> labels_;
  std::string entry_;  ///< The entry so far, without line ends.
  std::string_view place_;
  int line_ = 0, first_line_ = 0;
};

}  // namespace

SynonymTable parse_synonyms(std::string_view text) { return SynonymParser().parse(text); }

std::span<const Synonym> all_synonyms() {
  static const SynonymTable table = parse_synonyms(kSynonymsText);
  return table.synonyms;
}

}  // namespace lockstep
