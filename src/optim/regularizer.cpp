// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/regularizer.h"

#include <algorithm>

#include "config/option.h"
#include "core/range.h"

namespace lockstep {

namespace {

constexpr std::int64_t kChunk = std::int64_t{1} << 16;
constexpr std::int64_t kDeviceChunk = std::int64_t{1} << 13;  // enough blocks of threads for a small layer

struct Options {
  std::string variables;
  double l1 = 0, l2 = 0;
};
constexpr ParamSpec kTable[] = {
    option<&Options::variables>(
        "variables", kRequired, {},
        "Names of variables, as a pattern: * stands for any text, ? for one character; \"*/kernel\" for all "
        "kernels. After re: stands a regular expression."),
    option<&Options::l1>("l1", "0", between(0, 1e6), "Factor of the sum of |w|."),
    option<&Options::l2>("l2", "0", between(0, 1e6), "Factor of half the sum of w^2."),
};

RegularizationRule rule_from_config(const Node& node) {
  const Params params(node, kTable, "regularization");
  const auto options = params.as<Options>();
  if (options.l1 == 0 && options.l2 == 0)
    throw params.error(option_name<&Options::l2>(params), "and l1 are both 0",
                       "Give one of them, or leave the line out.");
  const std::string_view variables = option_name<&Options::variables>(params);
  try {
    return {NamePattern(options.variables), options.l1, options.l2, params.where(variables)};
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage) throw;
    throw params.error(variables, error.what_happened(), error.advice());
  }
}

/// The trainable variable whose name is most like `pattern`: the one with the longest common suffix, because
/// patterns mostly begin with a *.
std::string most_alike(const std::string& pattern, const VariableStore& variables) {
  std::vector<std::string_view> names;
  for (const Variable& variable : variables.variables())
    if (variable.trainable) names.push_back(variable.name);
  if (names.empty()) return {};
  if (const std::string found = nearest(pattern, names); !found.empty()) return found;
  const auto likeness = [&](std::string_view name) {
    std::size_t end = 0, begin = 0;
    const std::size_t most = std::min(pattern.size(), name.size());
    while (end < most && pattern[pattern.size() - 1 - end] == name[name.size() - 1 - end]) ++end;
    while (begin < most && pattern[begin] == name[begin]) ++begin;
    return end + begin;
  };
  return std::string(*std::ranges::max_element(names, {}, likeness));
}

std::string advice_for(const std::string& pattern, const VariableStore& variables) {
  const std::string advice = advice_for_pattern(pattern);
  return advice + fmt::format("The nearest is '{}'.", most_alike(pattern, variables));
}

const PenaltyTableKernels& table_kernels(const KernelTable& kernels) {
  const auto* const found = dynamic_cast<const PenaltyTableKernels*>(&kernels.loss_terms);
  LOCKSTEP_CHECK(found != nullptr, "a device without penalties of a table");
  return *found;
}

}  // namespace

std::span<const ParamSpec> regularization_table() { return kTable; }

std::vector<RegularizationRule> regularization_from_config(const Node& list) {
  std::vector<RegularizationRule> rules;
  if (is_null(list)) return rules;
  if (list.kind != Node::Kind::list)
    throw Error(ErrorKind::config, "model.regularization must be a list", list.where,
                "Write `- {variables: \"*/kernel\", l2: 1.0e-4}` for each.");
  ErrorCollector mistakes;
  for (const Node& item : list.items) mistakes.attempt([&] { rules.push_back(rule_from_config(item)); });
  mistakes.throw_if_any();
  return rules;
}

Regularizer::Regularizer(std::span<const RegularizationRule> rules, const VariableStore& variables,
                         Device& device)
    : device_(device), summed_(device) {
  const std::int64_t chunk = device.is_host() ? kChunk : kDeviceChunk;
  for (const RegularizationRule& rule : rules)
    if (std::ranges::none_of(variables.variables(), [&](const Variable& variable) {
          return variable.parameter && rule.variables.matches(variable.name);
        }))
      throw Error(
          ErrorKind::config,
          fmt::format("model.regularization: no trainable variable matches '{}'", rule.variables.text()),
          rule.where, advice_for(rule.variables.text(), variables));
  for (std::size_t id = 0; id < variables.variables().size(); ++id) {
    const Variable& variable = variables.variables()[id];
    double l1 = 0, l2 = 0;
    for (const RegularizationRule& rule : rules)
      if (variable.trainable && rule.variables.matches(variable.name)) {
        l1 += rule.l1;
        l2 += rule.l2;
      }
    const std::int64_t count = variable.shape.num_elements();
    for (std::int64_t first = 0; (l1 > 0 || l2 > 0) && first < count; first += chunk)
      pieces_.push_back({static_cast<VariableId>(id), first, std::min(chunk, count - first), l1, l2});
  }
  sums_ = Buffer::pinned(device, pieces_.size() * sizeof(double));
}

void Regularizer::make_table(const VariableStore& variables) {
  std::vector<PenaltyBlock> blocks;
  for (const Piece& piece : pieces_)
    blocks.push_back({variables[piece.variable].offset + piece.first, piece.count, piece.l1, piece.l2});
  table_ = Buffer(device_, blocks.size() * sizeof(PenaltyBlock));
  device_.copy_from_host(table_.data(), blocks.data(), table_.size_bytes());
}

void Regularizer::begin(const KernelTable& kernels, const Lane& lane, const VariableStore& variables) {
  if (pieces_.empty() || device_.is_host()) return;
  if (table_.size_bytes() == 0) make_table(variables);
  table_kernels(kernels).penalties(lane, std::ssize(pieces_), table_.as<PenaltyBlock>().data(),
                                   variables.trainable_address(), nullptr, sums_.as<double>().data());
  summed_.record(lane.stream);
}

double Regularizer::total() const {
  double sum = 0;
  for (const double part : sums_.as<double>()) sum += part;
  return sum;
}

double Regularizer::add(const KernelTable& kernels, ThreadPool& pool, std::span<Lane> lanes,
                        const VariableStore& variables, float* gradients) {
  if (pieces_.empty()) return 0;
  if (!device_.is_host()) {
    LOCKSTEP_CHECK(table_.size_bytes() > 0, "add() without begin()");
    table_kernels(kernels).penalties(lanes.front(), std::ssize(pieces_), table_.as<PenaltyBlock>().data(),
                                     variables.trainable_address(), gradients, nullptr);
    summed_.wait();
    return total();
  }
  pool.run([&](int thread) {
    const Range part = part_of(static_cast<std::int64_t>(pieces_.size()), thread, pool.size());
    for (std::int64_t i = part.first; i < part.last; ++i) {
      const Piece& piece = pieces_[static_cast<std::size_t>(i)];
      kernels.loss_terms.penalty(lanes[static_cast<std::size_t>(thread)], piece.l1, piece.l2, piece.count,
                                 variables.value(piece.variable) + piece.first,
                                 gradients + variables[piece.variable].offset + piece.first,
                                 &sums_.as<double>()[static_cast<std::size_t>(i)]);
    }
  });
  return total();
}

}  // namespace lockstep
