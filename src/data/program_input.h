// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Samples that the program itself gives, by name: the reader `program` opens them, so that a configuration
// can say which samples a run uses, and everything that belongs to a reader's samples (transforms, choice,
// memory, the comparison between ranks and jobs) belongs to these.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "data/dataset_parts.h"
#include "data/sample_store.h"

namespace lockstep {

/// Samples in memory of the program, which a set in memory uses where they lie. They do not change.
class LentStore final : public SampleStore {
 public:
  /// `values`: of all samples, as `form` says. `lender` keeps them; null: they outlive the store.
  LentStore(const StoredForm& form, const SampleValues& values, std::shared_ptr<const void> lender)
      : form_(form), values_(values), lender_(std::move(lender)) {}
  void read(std::int64_t first, std::int64_t count, const SampleRoom& to) override;
  const SampleValues& values() const { return values_; }

 private:
  const StoredForm form_;
  const SampleValues values_;
  const std::shared_ptr<const void> lender_;
};

/// The store of a reader's samples, if they are lent; null: they are not.
std::shared_ptr<const LentStore> lent_store(const DatasetParts& parts);

/// Gives the samples, the same on all ranks. Its parts have no transform; it may be called several times.
using ProgramInput = std::function<DatasetParts()>;

/// Sets the samples of a name, or replaces them. One thread.
void set_program_input(const std::string& name, ProgramInput input);
/// Gives them back. Sets that are open keep theirs.
void forget_program_input(const std::string& name);

}  // namespace lockstep
