// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/summary_tags.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/error.h"

namespace lockstep {

std::string clean_tag(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('/'), name.size()));
  std::string tag(name);
  for (char& c : tag) {
    const bool is_good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                         std::string_view("-/_.").find(c) != std::string_view::npos;
    if (!is_good) c = '_';
  }
  return tag;
}

std::string SummaryTags::unique(const std::string& name) {
  std::string candidate = name;
  for (int i = 1; !taken_.insert(candidate).second; ++i) candidate = fmt::format("{}_{}", name, i);
  return candidate;
}

SummaryTags::Scope SummaryTags::scope(std::string_view name) {
  const std::size_t length = prefix_.size();
  prefix_ = unique(prefix_ + clean_tag(name)) + "/";
  return {*this, length};
}

std::string SummaryTags::tag(std::string_view name, std::string_view family) {
  if (family.empty()) return unique(prefix_ + clean_tag(name));
  const std::string group = clean_tag(family);
  return fmt::format("{}/{}", group, unique(fmt::format("{}{}/{}", prefix_, group, clean_tag(name))));
}

std::vector<SummaryValue> merge_summaries(std::vector<std::vector<SummaryValue>> parts) {
  std::vector<SummaryValue> all;
  for (std::vector<SummaryValue>& part : parts)
    all.insert(all.end(), std::make_move_iterator(part.begin()), std::make_move_iterator(part.end()));
  std::set<std::string_view> tags;
  for (const SummaryValue& value : all)
    LOCKSTEP_REQUIRE(tags.insert(value.tag).second, ErrorKind::config,
                     "two summaries of one step have the tag '{}'", value.tag);
  return all;
}

void SummaryCollections::add(Producer producer, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) producers_[key].push_back(producer);
}

std::vector<SummaryValue> SummaryCollections::merge_all(std::int64_t step, std::string_view key) const {
  std::vector<std::vector<SummaryValue>> parts;
  if (const auto found = producers_.find(key); found != producers_.end())
    for (const Producer& producer : found->second) parts.push_back(producer(step));
  return merge_summaries(std::move(parts));
}

}  // namespace lockstep
