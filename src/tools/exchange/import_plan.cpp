// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/exchange/import_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace lockstep {

namespace {

using State = ImportPlan::State;

/// The pattern that a left side stands for: a scope is everything below it.
std::string pattern_of(const std::string& left) {
  if (left == "/") return "*";
  return left.ends_with('/') ? left + "*" : left;
}

/// A variable's own name and shape. Layers with the same ones, in this order, can be the same layer.
using Part = std::pair<std::string, std::vector<std::int64_t>>;

/// The tensors or variables of one layer that have no partner yet.
struct Layer {
  std::vector<std::string> name;  ///< its parts
  std::vector<Part> parts;        ///< sorted
  std::vector<std::size_t> items;
  bool settled = false;
};

std::vector<std::string> name_parts(const std::string& layer) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= layer.size(); ++i)
    if (i == layer.size() || layer[i] == '/' || layer[i] == '_' || layer[i] == '.') {
      if (i > begin) parts.push_back(layer.substr(begin, i - begin));
      begin = i + 1;
    }
  return parts;
}

/// Layers in the order of their first member. `item(i)` gives name and extents. `apart`: each variable by
/// itself.
template <typename Item>
std::vector<Layer> layers_of(const std::vector<std::size_t>& all, bool apart, Item item) {
  std::vector<Layer> layers;
  std::map<std::string, std::size_t> places;
  std::vector<std::vector<std::pair<Part, std::size_t>>> members;
  for (const std::size_t i : all) {
    const auto& [name, extents] = item(i);
    const std::size_t slash = name.rfind('/');
    const std::string layer = slash == std::string::npos ? "" : name.substr(0, slash);
    const auto [place, is_new] = places.emplace(apart ? name : layer, layers.size());
    if (is_new) {
      layers.push_back({name_parts(layer), {}, {}});
      members.emplace_back();
    }
    members[place->second].push_back({{name.substr(slash == std::string::npos ? 0 : slash + 1), extents}, i});
  }
  for (std::size_t l = 0; l < layers.size(); ++l) {
    std::ranges::sort(members[l]);
    for (const auto& [part, i] : members[l]) {
      layers[l].parts.push_back(part);
      layers[l].items.push_back(i);
    }
  }
  return layers;
}

bool same_names(const Layer& one, const Layer& other) {
  return std::ranges::equal(one.parts, other.parts, {}, &Part::first, &Part::first);
}

std::size_t common_end(const Layer& one, const Layer& other) {
  std::size_t count = 0;
  while (count < std::min(one.name.size(), other.name.size()) &&
         one.name[one.name.size() - 1 - count] == other.name[other.name.size() - 1 - count])
    ++count;
  return count;
}

class Proposal {
 public:
  Proposal(ImportPlan& plan, std::vector<Layer> file, std::vector<Layer> model)
      : plan_(plan), file_(std::move(file)), model_(std::move(model)) {}

  /// `settle`: two layers that alone end alike are not compared with others, whatever their shapes.
  void by_ends_of_names(bool settle) {
    std::size_t longest = 0;
    for (const Layer& layer : model_) longest = std::max(longest, layer.name.size());
    for (std::size_t count = longest + 1; count-- > 0;) {
      if (settle && count > 0) settle_other_shapes(count);
      pair_single(count);
    }
  }

  /// Layers of one class whose variables and shapes are equal, if both sides have as many of them.
  void by_order_in_their_class() {
    std::map<std::vector<Part>, std::pair<std::vector<Layer*>, std::vector<Layer*>>> groups;
    for (Layer& layer : file_)
      if (!layer.settled) groups[layer.parts].first.push_back(&layer);
    for (Layer& layer : model_)
      if (!layer.settled) groups[layer.parts].second.push_back(&layer);
    for (auto& [parts, sides] : groups) {
      std::set<std::vector<std::string>> classes;
      for (const Layer* const layer : sides.first) classes.insert(class_of(*layer));
      if (classes.size() != 1 || sides.first.size() != sides.second.size()) continue;
      for (std::size_t i = 0; i < sides.first.size(); ++i) pair(*sides.first[i], *sides.second[i], 0);
    }
  }

  /// What is left gets the tensors that it could be.
  void name_candidates() {
    for (const Layer& layer : model_) {
      if (layer.settled) continue;
      std::size_t longest = 0;
      std::vector<const Layer*> best;
      for (const Layer& other : file_) {
        if (other.settled || other.parts != layer.parts) continue;
        const std::size_t count = common_end(layer, other);
        if (count > longest) best.clear();
        if (count >= longest) best.push_back(&other);
        longest = std::max(longest, count);
      }
      for (std::size_t i = 0; i < layer.items.size() && !best.empty(); ++i) {
        ImportPlan::Line& line = plan_.lines[layer.items[i]];
        line.state = State::ambiguous;
        for (const Layer* const other : best) line.tensors.push_back(other->items[i]);
      }
    }
  }

 private:
  using Sides = std::pair<std::vector<Layer*>, std::vector<Layer*>>;

  /// The layers that are not settled, by `key(layer)`, if it gives one.
  template <typename Key>
  auto grouped(Key key) {
    std::map<typename decltype(key(file_[0]))::value_type, Sides> groups;
    for (Layer& layer : file_)
      if (const auto of = key(layer); of && !layer.settled) groups[*of].first.push_back(&layer);
    for (Layer& layer : model_)
      if (const auto of = key(layer); of && !layer.settled) groups[*of].second.push_back(&layer);
    return groups;
  }

  static std::optional<std::vector<std::string>> end_of(const Layer& layer, std::size_t count) {
    if (layer.name.size() < count) return std::nullopt;
    return std::vector<std::string>(layer.name.end() - static_cast<std::ptrdiff_t>(count), layer.name.end());
  }

  /// Two layers that alone end so are the same layer, also if their shapes say that it has changed.
  void settle_other_shapes(std::size_t count) {
    for (auto& [end, sides] : grouped([&](const Layer& layer) { return end_of(layer, count); })) {
      if (sides.first.size() != 1 || sides.second.size() != 1) continue;
      Layer &from = *sides.first.front(), &to = *sides.second.front();
      if (!same_names(from, to) || from.parts == to.parts) continue;
      from.settled = to.settled = true;
      for (std::size_t i = 0; i < to.items.size(); ++i) {
        ImportPlan::Line& line = plan_.lines[to.items[i]];
        line.state = State::other_shape;
        line.tensors = {from.items[i]};
      }
    }
  }

  void pair_single(std::size_t count) {
    using Key = std::pair<std::vector<std::string>, std::vector<Part>>;
    const auto key = [&](const Layer& layer) {
      const auto end = end_of(layer, count);
      return end ? std::optional(Key(*end, layer.parts)) : std::nullopt;
    };
    for (auto& [of, sides] : grouped(key))
      if (sides.first.size() == 1 && sides.second.size() == 1)
        pair(*sides.first.front(), *sides.second.front(), static_cast<int>(count));
  }

  void pair(Layer& from, Layer& to, int alike) {
    from.settled = to.settled = true;
    for (std::size_t i = 0; i < to.items.size(); ++i) {
      ImportPlan::Line& line = plan_.lines[to.items[i]];
      line.state = State::proposed;
      line.tensors = {from.items[i]};
      line.alike = alike;
    }
  }

  /// The name without the number at its end.
  static std::vector<std::string> class_of(const Layer& layer) {
    std::vector<std::string> name = layer.name;
    if (name.size() > 1 && std::ranges::all_of(name.back(), [](char c) { return c >= '0' && c <= '9'; }))
      name.pop_back();
    return name;
  }

  ImportPlan& plan_;
  std::vector<Layer> file_, model_;
};

std::vector<std::size_t> unused_tensors(const ImportPlan& plan, std::size_t count) {
  std::vector<bool> used(count, false);
  for (const ImportPlan::Line& line : plan.lines)
    if (line.state == State::taken || line.state == State::proposed) used[line.tensors.front()] = true;
  std::vector<std::size_t> unused;
  for (std::size_t i = 0; i < count; ++i)
    if (!used[i]) unused.push_back(i);
  return unused;
}

}  // namespace

ImportMap::ImportMap(const RenameMap& map) : rules_(map.rules), leaves_out_some_(!map.left_out.empty()) {
  std::vector<std::string> patterns;
  for (const std::string& left : map.left_out) patterns.push_back(pattern_of(left));
  left_out_ = NamePatterns(patterns);
}

bool ImportMap::leaves_out(const std::string& variable) const {
  return leaves_out_some_ && left_out_.matches(variable);
}

std::vector<std::string> ImportMap::unused(const std::vector<std::string>& names) const {
  std::vector<std::string> all = rules_.unused(names);
  for (const std::string& pattern : left_out_.unused(names)) all.push_back(pattern);
  return all;
}

ImportPlan plan_import(std::span<const ImportedTensor> tensors, std::span<const WantedVariable> wanted,
                       const ImportMap& map) {
  std::map<std::string, std::size_t> places;  // names of the file do not hide those of Lockstep
  for (std::size_t i = 0; i < tensors.size(); ++i) places.emplace(tensors[i].tensor.name, i);
  for (std::size_t i = 0; i < tensors.size(); ++i) places.emplace(tensors[i].from, i);
  ImportPlan plan;
  for (const WantedVariable& variable : wanted) {
    ImportPlan::Line& line = plan.lines.emplace_back();
    line.from = map.renamed(variable.name);
    if (map.leaves_out(variable.name)) {
      line.state = State::left_out;
    } else if (const auto found = places.find(line.from); found != places.end()) {
      line.tensors = {found->second};
      line.state =
          tensors[found->second].tensor.extents == variable.extents ? State::taken : State::other_shape;
    }
  }
  plan.unused = unused_tensors(plan, tensors.size());
  return plan;
}

namespace {

/// Proposes tensors for variables that have none. `apart`: single variables, for tensors that are alone in
/// their layer, as those of ONNX files are. Else whole layers.
void propose(ImportPlan& plan, std::span<const ImportedTensor> tensors,
             std::span<const WantedVariable> wanted, bool by_order, bool apart) {
  std::vector<std::size_t> missing, free;
  std::set<std::size_t> named;  // in another line
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const ImportPlan::Line& line = plan.lines[i];
    if (line.state == State::missing && line.from == wanted[i].name)
      missing.push_back(i);
    else
      named.insert(line.tensors.begin(), line.tensors.end());
  }
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (!named.contains(i)) free.push_back(i);
  const auto tensor = [&](std::size_t i) {
    return std::tie(tensors[i].tensor.name, tensors[i].tensor.extents);
  };
  const auto variable = [&](std::size_t i) { return std::tie(wanted[i].name, wanted[i].extents); };
  std::vector<Layer> file = layers_of(free, false, tensor);
  if (apart) std::erase_if(file, [](const Layer& layer) { return layer.parts.size() > 1; });
  Proposal proposal(plan, std::move(file), layers_of(missing, apart, variable));
  if (by_order)
    proposal.by_order_in_their_class();
  else
    proposal.by_ends_of_names(!apart);
  proposal.name_candidates();
}

}  // namespace

ImportPlan propose_import(std::span<const ImportedTensor> tensors, std::span<const WantedVariable> wanted,
                          const ImportMap& map, bool by_order) {
  ImportPlan plan = plan_import(tensors, wanted, map);
  propose(plan, tensors, wanted, by_order, false);
  if (!by_order) propose(plan, tensors, wanted, false, true);
  plan.unused = unused_tensors(plan, tensors.size());
  return plan;
}

}  // namespace lockstep
