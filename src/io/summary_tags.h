// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Tags of summaries: scopes and families of names, and collections of what produces values.
//
//     SummaryTags tags;
//     const auto encoder = tags.scope("encoder");
//     const std::string loss = tags.tag("loss");               // "encoder/loss"
//     const std::string rate = tags.tag("rate", "rates");      // "rates/encoder/rates/rate"
//
//     SummaryCollections collections;
//     collections.add([&](std::int64_t) { return std::vector<SummaryValue>{{loss, value}}; });
//     writer.add_summary(step, collections.merge_all(step));
//
// One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/summary_value.h"

namespace lockstep {

/// Characters other than letters, digits and - / _ . become "_"; "/" at the beginning is left out.
std::string clean_tag(std::string_view name);

class SummaryTags {
 public:
  /// Ends with this object.
  class Scope {
   public:
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() { owner_.prefix_.resize(length_); }

   private:
    friend class SummaryTags;
    Scope(SummaryTags& owner, std::size_t length) : owner_(owner), length_(length) {}
    SummaryTags& owner_;
    const std::size_t length_;
  };

  /// Opens a scope: until it ends, names begin with `name`. A scope of a name that exists already is called
  /// name_1, and so on.
  [[nodiscard]] Scope scope(std::string_view name);
  /// A new tag in the present scope: name, name_1, ... With a family, `family/<scope>/family/name`:
  /// TensorBoard shows a family together.
  std::string tag(std::string_view name, std::string_view family = {});

 private:
  std::string unique(const std::string& name);

  std::string prefix_;  ///< empty, or ends with "/"
  std::set<std::string, std::less<>> taken_;
};

/// The values of all, one after the other. Throws Error(config) for a tag that occurs twice.
std::vector<SummaryValue> merge_summaries(std::vector<std::vector<SummaryValue>> parts);

class SummaryCollections {
 public:
  static constexpr const char* kSummaries = "summaries";
  using Producer = std::function<std::vector<SummaryValue>(std::int64_t step)>;

  void add(Producer producer, const std::vector<std::string>& keys = {kSummaries});
  /// Calls the producers of a collection, in the order in which they were added.
  std::vector<SummaryValue> merge_all(std::int64_t step, std::string_view key = kSummaries) const;

 private:
  std::map<std::string, std::vector<Producer>, std::less<>> producers_;
};

}  // namespace lockstep
