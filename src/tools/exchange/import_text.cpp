// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/exchange/import_text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "config/yaml_quoted.h"
#include "core/shown_text.h"

namespace lockstep {

namespace {

using State = ImportPlan::State;

/// A text as a key or a value of YAML.
std::string quoted(const std::string& text) {
  const bool plain = !text.empty() && text != "null" &&
                     std::isalnum(static_cast<unsigned char>(text.front())) &&
                     std::ranges::all_of(text, [](unsigned char c) {
                       return std::isalnum(c) || c == '.' || c == '_' || c == '/' || c == '-';
                     });
  if (plain && std::ranges::any_of(text, [](unsigned char c) { return std::isalpha(c); })) return text;
  if (shown_text(text) != text) return yaml_quoted(text);
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "''" : std::string(1, c);
  return result + "'";
}

std::string candidates(const ImportPlan::Line& line, std::span<const ImportedTensor> tensors) {
  constexpr std::size_t kMostCandidates = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(line.tensors.size(), kMostCandidates); ++i)
    text += shown_format("{}{}", i == 0 ? "" : " or ", tensors[line.tensors[i]].from);
  if (line.tensors.size() > kMostCandidates)
    text += shown_format(" or one of {} more", line.tensors.size() - kMostCandidates);
  return text;
}

}  // namespace

std::string reason(const ImportPlan::Line& line, const WantedVariable& variable,
                   std::span<const ImportedTensor> tensors) {
  switch (line.state) {
    case State::taken:
    case State::proposed:
      return "";
    case State::left_out:
      return "left out by the mapping";
    case State::other_shape:
      return shown_format("is {} in the model, and {} is {}", extents_text(variable.extents),
                          tensors[line.tensors.front()].from,
                          extents_text(tensors[line.tensors.front()].tensor.extents));
    case State::ambiguous:
      return shown_format("may be {}", candidates(line, tensors));
    case State::missing:
      break;
  }
  return line.from == variable.name ? "no tensor of the file is like it"
                                    : shown_format("the file has no tensor {}", line.from);
}

std::string tensors_text(std::span<const ImportedTensor> tensors) {
  std::string text;
  for (const ImportedTensor& tensor : tensors)
    text += shown_format("{} {} {} -> {}\n", tensor.from, name_of(tensor.tensor.dtype),
                         extents_text(tensor.tensor.extents), tensor.tensor.name);
  return text;
}

std::string plan_text(const ImportPlan& plan, std::span<const ImportedTensor> tensors,
                      std::span<const WantedVariable> wanted) {
  std::string text, proposed;
  std::size_t open = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const ImportPlan::Line& line = plan.lines[i];
    const WantedVariable& variable = wanted[i];
    const std::string why = reason(line, variable, tensors);
    if (line.state == State::taken || line.state == State::proposed) {
      const ImportedTensor& tensor = tensors[line.tensors.front()];
      text += shown_format("{} {} {} <- {}{}\n", variable.name, name_of(tensor.tensor.dtype),
                           extents_text(variable.extents), tensor.from,
                           line.state == State::taken ? ""
                           : line.alike > 0           ? " (the only one that ends alike)"
                                                      : " (by shape alone)");
      if (line.state == State::proposed)
        proposed += shown_format("{}: {}\n", quoted(variable.name), quoted(tensor.from));
      continue;
    }
    text += shown_format("{} {} <- nothing: {}\n", variable.name, extents_text(variable.extents), why);
    if (line.state == State::ambiguous) {
      ++open;
      proposed += shown_format("# {}: {}\n", quoted(variable.name), candidates(line, tensors));
    } else if (line.state != State::left_out) {
      proposed += shown_format("{}: null  # {}\n", quoted(variable.name), why);
    }
  }
  for (const std::size_t i : plan.unused)
    text += shown_format("not used: {} {} {}\n", tensors[i].from, name_of(tensors[i].tensor.dtype),
                         extents_text(tensors[i].tensor.extents));
  if (open > 0)
    text += shown_format(
        "\n{} variable{} left out of the mapping, because names and shapes do not decide: give "
        "each its tensor.\n",
        open, open == 1 ? " is" : "s are");
  if (!proposed.empty()) text += "\nA mapping for --map:\n" + proposed;
  return text;
}

}  // namespace lockstep
