// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/variable_store.h"

#include <algorithm>

#include "config/params.h"
#include "core/hash.h"
#include "core/name_list.h"
#include "core/shown_text.h"
#include "core/sizes.h"

namespace lockstep {

VariableId VariableStore::declare(std::string name, Shape shape,
                                  std::shared_ptr<const Initializer> initializer, bool trainable,
                                  bool saved) {
  if (sharing_) return shared(name, shape, trainable);
  LOCKSTEP_REQUIRE(!id_of_name_.contains(name), ErrorKind::config,
                   "two variables are named '{}'; give the layers different names", name);
  const bool frozen = is_frozen_ && is_frozen_(name);
  id_of_name_.emplace(name, static_cast<VariableId>(variables_.size()));
  variables_.push_back({.name = std::move(name),
                        .shape = shape,
                        .trainable = trainable && !frozen,
                        .initializer = std::move(initializer),
                        .saved = saved,
                        .parameter = trainable,
                        .frozen = frozen});
  return static_cast<VariableId>(variables_.size() - 1);
}

VariableId VariableStore::declare_table(std::string name, Shape shape,
                                        std::shared_ptr<const Initializer> initializer, RowBound bound) {
  const bool is_shared = sharing_.has_value();
  const VariableId id = declare(std::move(name), shape, std::move(initializer));
  // The rows of several layers would have to be merged first.
  auto& row_bound = variables_[static_cast<std::size_t>(id)].row_bound;
  row_bound = is_shared || !(*this)[id].trainable ? std::nullopt : std::optional(bound);
  return id;
}

void VariableStore::make_sparse(VariableId id) {
  Variable& variable = variables_[static_cast<std::size_t>(id)];
  LOCKSTEP_CHECK(variable.row_bound && variable.sparse_index < 0 && device_ == nullptr, "{}", variable.name);
  variable.sparse_index = static_cast<int>(sparse_.size());
  sparse_.push_back(id);
}

void VariableStore::share(int first, int last, std::string layer, std::string owner) {
  LOCKSTEP_CHECK(!sharing_ && first <= last && last <= static_cast<int>(variables_.size()));
  sharing_ = Sharing{first, last, std::move(layer), std::move(owner)};
}

VariableId VariableStore::shared(const std::string& name, const Shape& shape, bool trainable) {
  Sharing& sharing = *sharing_;
  const auto own_part = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
  LOCKSTEP_REQUIRE(sharing.next < sharing.last, ErrorKind::config,
                   "layer {}: {} has no variable {} to share; give both layers the same options",
                   sharing.layer, sharing.owner, own_part(name));
  const Variable& variable = variables_[static_cast<std::size_t>(sharing.next)];
  LOCKSTEP_REQUIRE(
      own_part(variable.name) == own_part(name) && variable.shape == shape && variable.parameter == trainable,
      ErrorKind::config,
      "layer {} cannot use the variables of {}: it needs a {} of {}, but {} has a {} of {}; give both the "
      "same options and inputs of one shape",
      sharing.layer, sharing.owner, own_part(name), shape.to_string(), sharing.owner, own_part(variable.name),
      variable.shape.to_string());
  return static_cast<VariableId>(sharing.next++);
}

void VariableStore::end_share() {
  const Sharing sharing = *sharing_;
  sharing_.reset();
  LOCKSTEP_REQUIRE(sharing.next == sharing.last, ErrorKind::config,
                   "layer {} uses only some of the variables of {}; give both the same options",
                   sharing.layer, sharing.owner);
}

void VariableStore::commit(Device& device) {
  std::int64_t others = 0;
  const auto place = [](Variable& variable, std::int64_t& end) {
    variable.offset = end;
    end += padded(variable.shape.num_elements());
  };
  for (auto variable = variables_.rbegin(); variable != variables_.rend(); ++variable)
    if (variable->sparse_index < 0 && !variable->frozen)
      place(*variable, variable->trainable ? dense_elements_ : others);
  changing_bytes_ = static_cast<std::size_t>(others) * sizeof(float);
  for (Variable& variable : variables_)
    if (variable.frozen) place(variable, others);
  trainable_elements_ = dense_elements_;
  for (const VariableId id : sparse_) place(variables_[static_cast<std::size_t>(id)], trainable_elements_);
  const auto largest = std::ranges::max_element(
      variables_, {}, [](const Variable& variable) { return variable.shape.num_elements(); });
  allocate_for(
      fmt::format("the {} values of the model's variables{}", trainable_elements_ + others,
                  largest == variables_.end() ? ""
                                              : fmt::format(", the largest of which is {} ({})",
                                                            largest->name, largest->shape.to_string())),
      [&] {
        trainable_ = Buffer(device, static_cast<std::size_t>(trainable_elements_) * sizeof(float));
        others_ = Buffer(device, static_cast<std::size_t>(others) * sizeof(float));
      });
  device_ = &device;
  if (device.is_host()) return;
  trainable_mirror_ = Buffer::pinned(device, trainable_.size_bytes());
  others_mirror_ = Buffer::pinned(device, others_.size_bytes());
}

const Buffer& VariableStore::host_trainable() const {
  if (device_->is_host()) return trainable_;
  if (old_trainable_)
    device_->copy_to_host(trainable_mirror_.data(), trainable_.data(), trainable_.size_bytes());
  old_trainable_ = false;
  return trainable_mirror_;
}

const Buffer& VariableStore::host_others() const {
  if (device_->is_host()) return others_;
  if (old_others_) device_->copy_to_host(others_mirror_.data(), others_.data(), others_.size_bytes());
  old_others_ = false;
  return others_mirror_;
}

void VariableStore::to_device() {
  if (device_->is_host()) return;
  // A copy that is out of date was not read, so it was not changed either.
  if (!old_trainable_)
    device_->copy_from_host(trainable_.data(), trainable_mirror_.data(), trainable_.size_bytes());
  if (!old_others_) device_->copy_from_host(others_.data(), others_mirror_.data(), others_.size_bytes());
}

Tensor VariableStore::tensor(VariableId id) const {
  const Variable& variable = (*this)[id];
  const Buffer& buffer = variable.trainable ? host_trainable() : host_others();
  return {static_cast<float*>(buffer.data()) + variable.offset, DType::f32, variable.shape};
}

void VariableStore::initialize(std::uint64_t seed) {
  for (std::size_t i = 0; i < variables_.size(); ++i) {
    Variable& variable = variables_[i];
    const auto elements = static_cast<std::size_t>(variable.shape.num_elements());
    const std::span<float> values(tensor(static_cast<VariableId>(i)).f32(), elements);
    variable.is_set = variable.initializer != nullptr;
    if (variable.is_set)
      variable.initializer->fill(seed, variable.name, variable.shape, values);
    else
      std::ranges::fill(values, 0.0F);
  }
  to_device();
}

VariableId VariableStore::find(std::string_view name) const {
  const auto found = id_of_name_.find(std::string(name));
  if (found != id_of_name_.end()) return found->second;
  std::vector<std::string_view> names;
  for (const Variable& variable : variables_) names.push_back(variable.name);
  const std::string near = nearest(name, names);
  throw Error(ErrorKind::usage, fmt::format("there is no variable {}", shown_text(name)), "",
              fmt::format("{}The model has {}.", near.empty() ? "" : fmt::format("Did you mean {}? ", near),
                          names.empty() ? "none" : name_list(names)));
}

float* VariableStore::value(VariableId id) const {
  const Variable& variable = (*this)[id];
  return static_cast<float*>((variable.trainable ? trainable_ : others_).data()) + variable.offset;
}

std::int64_t VariableStore::num_parameters() const {
  std::int64_t sum = 0;
  for (const Variable& variable : variables_)
    if (variable.trainable) sum += variable.shape.num_elements();
  return sum;
}

std::int64_t VariableStore::num_frozen_parameters() const {
  std::int64_t sum = 0;
  for (const Variable& variable : variables_)
    if (variable.parameter && variable.frozen) sum += variable.shape.num_elements();
  return sum;
}

std::vector<std::int64_t> VariableStore::cut_points() const {
  std::vector<std::int64_t> points;
  for (const Variable& variable : variables_)
    if (variable.trainable && variable.sparse_index < 0) points.push_back(variable.offset);
  points.push_back(dense_elements_);
  std::sort(points.begin(), points.end());
  return points;
}

std::vector<std::string> VariableStore::unset() const {
  std::vector<std::string> names;
  for (const Variable& variable : variables_)
    if (!variable.is_set) names.push_back(variable.name);
  return names;
}

std::uint64_t VariableStore::hash() const {
  const Buffer &trainable = host_trainable(), &others = host_others();
  const std::uint64_t parts[] = {hash64(trainable.data(), trainable.size_bytes()),
                                 hash64(others.data(), others.size_bytes())};
  return hash64(parts, sizeof parts);
}

}  // namespace lockstep
