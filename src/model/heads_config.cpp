// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Makes Heads from the configuration's section `model`.
#include <algorithm>

#include "config/named_options.h"
#include "config/option.h"
#include "core/scalar.h"
#include "model/heads.h"
#include "model/heads_options.h"
#include "model/layer_name.h"

namespace lockstep {

namespace {

/// A head as it is written.
struct Written {
  std::string name;
  std::optional<std::string> output;
  Node loss, labels, sample_weights, label_table;
  double weight = 1;
};
constexpr ParamSpec kTable[] = {
    option<&Written::name>("name", kRequired, {}, "Name of the head; its loss is reported as loss/NAME."),
    option<&Written::output>("output", "null", in_words("layer, layer:1, or null"),
                             "The layer whose output the loss reads. null: the last layer."),
    option<&Written::loss>("loss", "softmax_cross_entropy", {}, "See the list of losses."),
    option<&Written::weight>("weight", "1", between(0, 1e30), "Factor of its loss in the sum."),
    option<&Written::labels>("labels", "null", in_words("name, [first, last) or null"),
                             "Its labels: a target of the data (data.targets), or label columns, 0-based, "
                             "the last one not included. "
                             "null: all."),
    option<&Written::sample_weights>(
        "sample_weights", "null", in_words("name, column or null"),
        "Weights of the samples: a target of the data, or a label column, 0-based. The loss is the sum of "
        "weight x loss "
        "of a sample, divided by the sum of the weights. null: all 1."),
    option<&Written::label_table>("label_table", "null", in_words("list of rows, or null"),
                                  "Rows of label values, one per class: a class index in a label column is "
                                  "replaced by its row. All rows "
                                  "have the same length."),
};

Error table_error(const Node& node, std::string what) {
  return Error(ErrorKind::config, "label_table: " + std::move(what), node.where,
               "Give a list with a row of numbers for each class: [[0, 1], [1, 0]].");
}

std::vector<std::vector<float>> label_table(const Node& node) {
  std::vector<std::vector<float>> table;
  if (node.kind != Node::Kind::list || node.items.empty()) throw table_error(node, "is no list of rows");
  for (const Node& row : node.items) {
    std::vector<float>& values = table.emplace_back();
    const std::span<const Node> items =
        row.kind == Node::Kind::list ? std::span<const Node>(row.items) : std::span<const Node>(&row, 1);
    for (const Node& item : items) {
      const auto value = item.kind == Node::Kind::scalar ? parse_real(item.text) : std::nullopt;
      if (!value || !std::isfinite(*value)) throw table_error(item, "contains a value that is not a number");
      values.push_back(static_cast<float>(*value));
    }
    if (values.empty() || values.size() != table[0].size())
      throw table_error(row, fmt::format("row {} has {} values, the first {}", table.size() - 1,
                                         values.size(), table[0].size()));
  }
  return table;
}

void read_labels(Head& head, const Params& params, const Node& node) {
  if (is_null(node)) return;
  const auto number = [](const Node& item) {
    return item.kind == Node::Kind::scalar ? parse_integer(item.text) : std::nullopt;
  };
  if (node.kind == Node::Kind::scalar && !number(node)) {
    head.label_name = node.text;
    return;
  }
  const std::optional<std::int64_t> first = node.items.size() == 2 ? number(node.items[0]) : std::nullopt,
                                    last = node.items.size() == 2 ? number(node.items[1]) : std::nullopt;
  if (!first || !last || *first < 0 || *first >= *last)
    throw params.error(
        option_name<&Written::labels>(params), "are not a range of columns",
        "Give labels as [first, last): 0-based, the last one not included; or name a target of "
        "the data.");
  head.columns = {*first, *last};
}

/// The option sample_weights of a head or of the model.
void read_weights(Head& head, const Params& params, std::string_view option, const Node& node) {
  if (is_null(node)) return;
  if (!head.loss->takes_weights())
    throw params.error(option, "this loss takes no weights", "Leave sample_weights out.");
  const std::optional<std::int64_t> column =
      node.kind == Node::Kind::scalar ? parse_integer(node.text) : std::nullopt;
  if (node.kind != Node::Kind::scalar || (column && *column < 0))
    throw params.error(option, "is neither a name nor a column",
                       "Name a target of the data, or give the number of a label column, from 0.");
  if (column)
    head.weight_column = *column;
  else
    head.weight_name = node.text;
}

Head head_from_config(const Node& node) {
  const Params params(node, kTable, "head of the model");
  const auto written = params.as<Written>();
  const std::string& name = written.name;
  if (!wrong_in_layer_name(name).empty() || name.find('/') != std::string::npos || name == "regularization")
    throw params.error(option_name<&Written::name>(params),
                       fmt::format("'{}' is not a name for a head", printable(name)),
                       "A name has letters, digits and any of _ - . + @, and is not 'regularization'.");
  Head head{.name = name,
            .output = written.output.value_or(""),
            .loss = make_loss(written.loss),
            .weight = written.weight,
            .where = node.overridden.empty() ? node.where : node.overridden};
  read_labels(head, params, written.labels);
  read_weights(head, params, option_name<&Written::sample_weights>(params), written.sample_weights);
  if (!is_null(written.label_table)) {
    if (!head.loss->takes_labels())
      throw params.error(option_name<&Written::label_table>(params), "this loss takes no labels",
                         "Leave label_table out.");
    head.table = label_table(written.label_table);
  }
  return head;
}

}  // namespace

std::span<const ParamSpec> head_table() { return kTable; }

Heads heads_from_config(const Params& model) {
  const auto written = model.as<HeadsOptions>();
  const std::string_view loss = option_name<&HeadsOptions::loss>(model),
                         weights = option_name<&HeadsOptions::sample_weights>(model),
                         several = option_name<&HeadsOptions::heads>(model);
  const Node& list = written.heads;
  std::vector<Head> heads;
  if (is_null(list)) {
    heads.push_back({.loss = make_loss(written.loss), .where = model.where(loss)});
    read_weights(heads.front(), model, weights, written.sample_weights);
    return Heads(std::move(heads));
  }
  if (model.given(weights)) throw model.error(weights, "stands beside heads", "Write it in each head.");
  if (const std::string_view blamed = option_to_blame(model, {loss, several}); model.given(loss))
    throw model.error(blamed, fmt::format("stands beside {}", blamed == several ? loss : several),
                      "Give either loss, or a list of heads with a loss each.");
  if (list.kind != Node::Kind::list || list.items.empty())
    throw Error(ErrorKind::config, "model.heads must be a list of heads", list.where,
                "Write `- {name: NAME, output: LAYER, loss: LOSS}` for each.");
  ErrorCollector mistakes;
  for (const Node& item : list.items)
    mistakes.attempt([&] {
      heads.push_back(head_from_config(item));
      if (std::ranges::count(heads, heads.back().name, &Head::name) > 1)
        throw Error(ErrorKind::config, fmt::format("two heads are named '{}'", heads.back().name),
                    item.where);
    });
  mistakes.throw_if_any();
  return Heads(std::move(heads));
}

}  // namespace lockstep
