// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "api/model_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "config/named_options.h"
#include "config/params.h"
#include "core/error.h"

namespace lockstep {

/// The layers of a model, in the order in which they were added.
class LayerList {
 public:
  /// Adds a layer; gives its name.
  std::string add(const std::vector<std::string>& inputs, const Choice& layer);
  bool has(std::string_view name) const { return std::ranges::find(names_, name) != names_.end(); }
  const std::string& last() const { return names_.back(); }
  Node node() const { return OptionValue(layers_).node(); }

 private:
  std::string name_of(const Choice& layer);

  std::vector<Node> layers_;
  std::vector<std::string> names_;
  std::map<std::string, int> count_;  ///< of each kind, as in a configuration
};

namespace {

constexpr std::string_view kFeatures = "features";

}  // namespace

std::string LayerList::name_of(const Choice& layer) {
  const int number = ++count_[layer.name];
  const Node* given = layer.options.find("name");
  return given != nullptr && !is_null(*given) ? given->text : fmt::format("{}{}", layer.name, number);
}

std::string LayerList::add(const std::vector<std::string>& inputs, const Choice& layer) {
  const std::string name = name_of(layer);
  if (has(name))
    throw Error(ErrorKind::config, fmt::format("two layers are called '{}'", name), "",
                "Give one of them another name.");
  Choice written = layer;
  // The first layer reads the features, and others the layer before them, if nothing else is said.
  const bool follows = inputs.size() == 1 && inputs[0] == (names_.empty() ? kFeatures : names_.back());
  if (!follows) set_option(written.options, "inputs", inputs);
  layers_.push_back(written.node());
  names_.push_back(name);
  return name;
}

LayerOutput LayerOutput::output(int number) const {
  const std::string layer = name_.substr(0, name_.find(':'));
  return {list_, number == 0 ? layer : fmt::format("{}:{}", layer, number)};
}

Features::Features() : list_(std::make_shared<LayerList>()) {}
Features::operator LayerOutput() const { return {list_, std::string(kFeatures)}; }
LayerOutput Features::operator[](std::string_view name) const { return {list_, std::string(name)}; }

LayerOutput add_layer(const LayerInputs& inputs, const Choice& layer) {
  if (inputs.all().empty())
    throw Error(ErrorKind::config, fmt::format("a layer {} reads nothing", layer.name), "",
                "Give it the output of another layer, or the features.");
  const std::shared_ptr<LayerList>& list = inputs.all().front().list_;
  std::vector<std::string> names;
  for (const LayerOutput& input : inputs.all()) {
    if (input.list_ != list)
      throw Error(ErrorKind::config,
                  fmt::format("a layer {} reads {} and {}, which are of two models", layer.name,
                              inputs.all().front().name(), input.name()),
                  "", "Use the features that the model function was given.");
    names.push_back(input.name());
  }
  return {list, list->add(names, layer)};
}

LayerOutput add_layer_shared(const LayerInputs& inputs, const LayerOutput& shared_with, Choice layer) {
  set_option(layer.options, "shared_with", shared_with.output(0).name());
  return add_layer(inputs, layer);
}

LayerOutput add_layers(const LayerOutput& input, const Node& layers) {
  LayerOutput last = input;
  bool first = true;
  for (const Node& item : layers.items) {
    const NamedOptions named = named_options(item, "layer");
    Choice layer{named.name, named.options};
    std::vector<LayerOutput> inputs{last};
    if (const Node* given = layer.options.find("inputs"); given != nullptr && !is_null(*given)) {
      inputs.clear();
      const auto add_input = [&](const Node& name) {
        inputs.push_back(first && name.text == kFeatures ? input : LayerOutput(input.list_, name.text));
      };
      if (given->kind == Node::Kind::list)
        for (const Node& name : given->items) add_input(name);
      else
        add_input(*given);
      std::erase_if(layer.options.entries, [](const auto& entry) { return entry.first == "inputs"; });
    }
    last = add_layer(inputs, layer);
    first = false;
  }
  return last;
}

LabelColumns LabelColumns::operator[](std::string_view target) const {
  return LabelColumns(OptionValue(target));
}
LabelColumns LabelColumns::columns(std::int64_t first, std::int64_t last) const {
  return LabelColumns(OptionValue(std::vector<std::int64_t>{first, last}));
}

TrainingLoss operator+(TrainingLoss a, const TrainingLoss& b) {
  a.terms_.insert(a.terms_.end(), b.terms_.begin(), b.terms_.end());
  return a;
}
TrainingLoss operator*(double factor, TrainingLoss loss) {
  for (TrainingLoss::Term& term : loss.terms_) term.weight *= factor;
  return loss;
}

TrainingLoss loss_term(const LabelColumns& labels, const LayerOutput& output, const Choice& loss,
                       const LossTermOptions& term) {
  TrainingLoss sum;
  sum.terms_.push_back({output, loss.node(), labels.node().node(), term});
  return sum;
}

Node TrainingLoss::model_section() const {
  if (terms_.empty()) throw Error(ErrorKind::config, "the model has no loss", "", "Set EstimatorSpec::loss.");
  const std::shared_ptr<LayerList>& list = terms_.front().output.list_;
  Node section = options_map({{"layers", list->node()}});
  for (const Term& term : terms_)
    if (term.output.list_ != list)
      throw Error(ErrorKind::config,
                  fmt::format("the losses of {} and {} are of two models", terms_.front().output.name(),
                              term.output.name()),
                  "", "Use the features that the model function was given.");
  const Term& first = terms_.front();
  if (terms_.size() == 1 && first.weight == 1 && first.options.name.empty() && is_null(first.labels) &&
      first.options.label_table.node() == nullptr && first.output.name() == list->last()) {
    set_option(section, "loss", first.loss);
    if (const Node* weights = first.options.sample_weights.node())
      set_option(section, "sample_weights", *weights);
    return section;
  }
  std::vector<Node> heads;
  for (const Term& term : terms_) {
    Node head;
    set_option(head, "name", term.options.name.empty() ? term.output.output(0).name() : term.options.name);
    set_option(head, "output", term.output.name());
    set_option(head, "loss", term.loss);
    if (term.weight != 1) set_option(head, "weight", term.weight);
    if (!is_null(term.labels)) set_option(head, "labels", term.labels);
    if (const Node* weights = term.options.sample_weights.node())
      set_option(head, "sample_weights", *weights);
    if (const Node* table = term.options.label_table.node()) set_option(head, "label_table", *table);
    heads.push_back(std::move(head));
  }
  set_option(section, "heads", heads);
  return section;
}

Node predictions_section(const std::vector<std::pair<std::string, LayerOutput>>& predictions) {
  std::vector<Node> heads;
  for (const auto& [name, output] : predictions)  // the loss `mean` takes no labels and changes no output
    heads.push_back(options_map({{"name", name}, {"output", output.name()}, {"loss", "mean"}}));
  return options_map({{"layers", predictions.front().second.list_->node()}, {"heads", heads}});
}

}  // namespace lockstep
