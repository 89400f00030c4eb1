// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A table of what configurations name: layers, losses, metrics, optimizers, readers, hooks. Each kind has
// one, which a function returns: layer_table(). Lockstep's own entries come first, in the order of the list
// in the function's file; a plugin or a program adds others:
//
//   lockstep::layer_table().add({"prelu", "y = max(x, alpha x)", kOptions, make_layer<Prelu>});
//
// before a configuration is read. The texts and options of an entry live as long as the program.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "config/named_options.h"

namespace lockstep {

/// Throws Error(config): an entry of a `what` has this name already.
[[noreturn]] void throw_name_taken(std::string_view what, std::string_view name);

/// `Entry` has `name`, `help` and `table`, the options.
template <typename Entry>
class Table {
 public:
  /// `what` one entry is, for messages: "layer".
  Table(std::string_view what, std::initializer_list<const Entry*> own) : what_(what) {
    for (const Entry* entry : own) entries_.push_back(*entry);
  }
  /// Of entries that are made in another way.
  Table(std::string_view what, const std::vector<Entry>& own) : what_(what), entries_(own) {}
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  auto begin() const { return entries_.cbegin(); }
  auto end() const { return entries_.cend(); }
  std::span<const Entry> entries() const { return entries_; }
  std::size_t size() const { return entries_.size(); }

  /// Null: there is none of this name.
  const Entry* find(std::string_view name) const {
    for (const Entry& entry : entries_)
      if (entry.name == name) return &entry;
    return nullptr;
  }
  /// Throws Error(config), and suggests the right name, if there is none.
  const Entry& at(const NamedOptions& named) const {
    if (const Entry* const found = find(named.name)) return *found;
    throw_unknown_name(named, what_, names());
  }
  std::vector<std::string_view> names() const {
    std::vector<std::string_view> all;
    for (const Entry& entry : entries_) all.push_back(entry.name);
    return all;
  }

  /// Throws Error(config) if the name is taken.
  void add(const Entry& entry) {
    if (find(entry.name) != nullptr) throw_name_taken(what_, entry.name);
    entries_.push_back(entry);
  }

 private:
  std::string_view what_;
  std::vector<Entry> entries_;
};

}  // namespace lockstep

// Defines `Table<Entry>& function()`. `LIST` is a macro that applies its argument to each of Lockstep's own
// entries, one per line; each is defined in its own file, as `extern const Entry kName = {...};`.
#define LOCKSTEP_TABLE(Entry, function, what, LIST)                        \
  Table<Entry>& function() {                                               \
    using OwnEntry = Entry;                                                \
    LIST(LOCKSTEP_DECLARE_ENTRY)                                           \
    static Table<OwnEntry> table(what, {LIST(LOCKSTEP_ADDRESS_OF_ENTRY)}); \
    return table;                                                          \
  }
#define LOCKSTEP_DECLARE_ENTRY(entry) extern const OwnEntry entry;
#define LOCKSTEP_ADDRESS_OF_ENTRY(entry) &entry,
