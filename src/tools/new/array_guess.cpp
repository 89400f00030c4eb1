// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/new/array_guess.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "core/name_list.h"
#include "tools/new/usual_names.h"

namespace lockstep {

namespace {

using Kind = NamedArray::Kind;

/// An array, and what its name says.
struct Candidate {
  const NamedArray* array;
  std::optional<SetKind> set;
  std::string rest;  ///< the name without the set
  const std::string& name() const { return array->name; }
  std::int64_t rows() const { return array->extents[0]; }
  std::size_t rank() const { return array->extents.size(); }
};

double size_of(const NamedArray& array) {
  double product = 1;
  for (const std::int64_t extent : array.extents) product *= static_cast<double>(extent);
  return product;
}

const Candidate* find(const std::vector<Candidate>& candidates, const std::string& name) {
  const auto found = std::ranges::find_if(candidates, [&](const Candidate& c) { return c.name() == name; });
  return found == candidates.end() ? nullptr : &*found;
}

class Choice {
 public:
  Choice(const std::vector<NamedArray>& arrays, const DataQuestion& question, const std::string& word)
      : arrays_(arrays), question_(question), word_(word) {
    for (const NamedArray& array : arrays) {
      if (array.extents.empty() || array.extents[0] <= 0) continue;
      Candidate candidate{&array, std::nullopt, lower_case(array.name)};
      if (const auto set = set_of(array.name)) candidate.set = set->set, candidate.rest = set->rest;
      candidates_.push_back(candidate);
    }
    has_train_ = std::ranges::any_of(
        candidates_, [](const Candidate& c) { return c.set == SetKind::train && c.array->excluded.empty(); });
  }

  ChosenArrays chosen() {
    const Candidate& features = features_of();
    const Candidate& labels = labels_of(features);
    ChosenArrays chosen{features.name(), labels.name(), {}, {}, {}, std::move(assumed_)};
    if (features.set == SetKind::train && labels.set == SetKind::train) add_eval(chosen, features, labels);
    return chosen;
  }

 private:
  /// Of an array for evaluation nothing is learnt.
  bool may_train(const Candidate& c) const {
    return c.array->excluded.empty() && (!has_train_ || c.set == SetKind::train);
  }

  static bool is_label(const Candidate& c) {
    return label_rank(c.rest, true).has_value() && !feature_rank(c.rest, false);
  }

  bool may_be_features(const Candidate& c, std::size_t least_rank) const {
    const bool numbers =
        c.array->kind == Kind::whole || c.array->kind == Kind::real || c.array->kind == Kind::image;
    return may_train(c) && numbers && c.rank() >= least_rank && !is_label(c) && !names_rows(c.rest) &&
           !(c.rank() == 1 && names_axis(c.rest));
  }

  const Candidate& features_of() {
    if (!question_.features.empty()) {
      if (const Candidate* const named = find(candidates_, question_.features)) return *named;
      fail(fmt::format("has no {} '{}'", word_, question_.features), "--features");
    }
    for (const std::size_t least_rank : {std::size_t{2}, std::size_t{1}}) {
      const Candidate* best = nullptr;
      std::vector<std::string> all;
      for (const Candidate& c : candidates_) {
        if (!may_be_features(c, least_rank)) continue;
        if (least_rank == 1 && !feature_rank(c.rest, true) && c.array->kind != Kind::image) continue;
        all.push_back(c.name());
        if (best == nullptr || is_better(c, *best)) best = &c;
      }
      if (best == nullptr) {
        if (least_rank == 2)
          for (const Candidate& c : candidates_)
            if (may_train(c) && c.array->kind == Kind::table) return c;
        continue;
      }
      if (all.size() > 1 && !feature_rank(best->rest, false))
        assumed_.push_back(fmt::format("the input is {} '{}', the largest of {}; otherwise: --features NAME",
                                       word_, best->name(), name_list(all)));
      return *best;
    }
    fail(fmt::format("no {} has numbers in more than one axis", word_), "--features");
  }

  static bool is_better(const Candidate& c, const Candidate& best) {
    const auto rank = feature_rank(c.rest, true), other = feature_rank(best.rest, true);
    if (rank.has_value() != other.has_value()) return rank.has_value();
    if (rank && *rank != *other) return *rank < *other;
    return size_of(*c.array) > size_of(*best.array);
  }

  /// Why an array that belongs to the samples is no label; empty: it may be one.
  std::string no_label(const Candidate& c, const Candidate& features, bool is_named) const {
    if (!c.array->excluded.empty()) return c.array->excluded;
    if (c.rank() > 2) return "has more than two axes";
    if (c.array->kind == Kind::other || c.array->kind == Kind::table || c.array->kind == Kind::image)
      return "holds neither numbers nor texts";
    if (is_named) return "";
    if (group_of(c.name()) != group_of(features.name())) return "lies in another group";
    if (names_rows(c.rest)) return "names rows";
    if (names_axis(c.rest)) return "is a time or a place";
    if (c.array->kind == Kind::text && c.array->repeats && !c.array->repeats())
      return "has texts that are all different";
    if (c.array->kind == Kind::whole && c.rank() == 1 && c.array->counts_rows && c.array->counts_rows())
      return "counts the rows";
    return "";
  }

  const Candidate& labels_of(const Candidate& features) {
    if (!question_.labels.empty()) {
      if (const Candidate* const named = find(candidates_, question_.labels)) return *named;
      fail(fmt::format("has no {} '{}'", word_, question_.labels), "--labels");
    }
    const Candidate* best = nullptr;
    std::vector<std::string> others, refused;
    std::size_t best_rank = 0;
    for (const bool by_name : {true, false}) {
      for (const Candidate& c : candidates_) {
        if (&c == &features || c.rows() != features.rows() || c.set != features.set) continue;
        const auto rank = label_rank(c.rest, true);
        if (by_name != rank.has_value()) continue;
        if (const std::string why = no_label(c, features, by_name); !why.empty()) {
          refused.push_back(fmt::format("{} ({})", c.name(), why));
          continue;
        }
        const std::size_t place = rank ? *rank : kind_rank(c);
        others.push_back(c.name());
        if (best == nullptr || place < best_rank) best = &c, best_rank = place;
      }
      if (best == nullptr) continue;
      if (!by_name || others.size() > 1) {
        std::erase(others, best->name());
        assumed_.push_back(fmt::format(
            "the labels are {} '{}'{}; otherwise: --labels NAME", word_, best->name(),
            others.empty() ? ", by their shape alone" : fmt::format(", and not {}", name_list(others))));
      }
      return *best;
    }
    fail(fmt::format("no {} has a label for each of the {} rows of {}{}", word_, features.rows(),
                     features.name(),
                     refused.empty() ? "" : fmt::format("; no labels are: {}", name_list(refused))),
         "--labels");
  }

  /// One value before several, whole numbers and texts before fractions.
  static std::size_t kind_rank(const Candidate& c) {
    const std::size_t kind = c.array->kind == Kind::real ? 1 : 0;
    return 2 * (c.rank() - 1) + kind;
  }

  void add_eval(ChosenArrays& chosen, const Candidate& features, const Candidate& labels) const {
    for (const SetKind set : {SetKind::validation, SetKind::test}) {
      const Candidate* const x = counterpart(features, set);
      const Candidate* const y = counterpart(labels, set);
      if (x == nullptr || y == nullptr || x->rows() != y->rows()) continue;
      if (!chosen.eval_features.empty()) {
        chosen.notes.push_back(
            fmt::format("{} is not used: evaluations are of {}", x->name(), chosen.eval_features));
        continue;
      }
      chosen.eval_features = x->name();
      chosen.eval_labels = y->name();
    }
  }

  const Candidate* counterpart(const Candidate& of, SetKind set) const {
    for (const Candidate& c : candidates_)
      if (c.set == set && c.rest == of.rest && c.rank() == of.rank() &&
          std::equal(c.array->extents.begin() + 1, c.array->extents.end(), of.array->extents.begin() + 1))
        return &c;
    return nullptr;
  }

  [[noreturn]] void fail(std::string what, const std::string& option) const {
    throw Error(
        ErrorKind::data, std::move(what), question_.place,
        fmt::format("Name one with {}. There are: {}.{}", option, list_of(arrays_),
                    word_ != "dataset" ? ""
                                       : " To predict a series from its own steps, see the option window: "
                                         "docs/data_arrays.md#windows-of-steps."));
  }

  const std::vector<NamedArray>& arrays_;
  const DataQuestion& question_;
  const std::string& word_;
  std::vector<Candidate> candidates_;
  bool has_train_ = false;
  std::vector<std::string> assumed_;
};

}  // namespace

std::string group_of(const std::string& name) { return name.substr(0, name.rfind('/') + 1); }

std::string list_of(const std::vector<NamedArray>& arrays) {
  std::vector<std::string> names;
  for (const NamedArray& array : arrays)
    names.push_back(array.extents.empty()
                        ? array.name
                        : fmt::format("{} ({})", array.name, fmt::join(array.extents, " x ")));
  return names.empty() ? "none" : name_list(names, 20);
}

ChosenArrays choose_arrays(const std::vector<NamedArray>& arrays, const DataQuestion& question,
                           const std::string& word) {
  return Choice(arrays, question, word).chosen();
}

}  // namespace lockstep
