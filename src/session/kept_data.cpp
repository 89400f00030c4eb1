// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/kept_data.h"

#include "comm/share_text.h"
#include "io/atomic_file.h"
#include "session/run_class_counts.h"
#include "session/run_normalization.h"
#include "session/run_vocabulary.h"
#include "session/run_whitening.h"

namespace lockstep {

KeptFiles kept_data(const Dataset& data) {
  KeptFiles kept;
  add_vocabulary(data, kept);
  add_normalization(data, kept);
  add_whitening(data, kept);
  kept.emplace(kSampleDescription, sample_description_text(data));
  return kept;
}

KeptFiles kept_data(const Dataset& data, const Heads& heads) {
  KeptFiles kept = kept_data(data);
  add_class_counts(heads, kept);
  return kept;
}

void keep_data(const std::string& run_dir, const KeptFiles& kept) {
  for (const auto& [name, contents] : kept)
    if (name != kSampleDescription) write_file_atomically(run_dir + "/" + name, contents);
}

std::optional<SampleDescription> kept_description(const KeptFiles* kept, const std::string& where) {
  if (kept == nullptr) return std::nullopt;
  const auto found = kept->find(kSampleDescription);
  if (found == kept->end()) return std::nullopt;
  return sample_description(found->second, where);
}

std::shared_ptr<const KeptFiles> broadcast_kept(Communicator& world, std::shared_ptr<const KeptFiles> kept) {
  constexpr const char* kWhat = "what the run keeps of its data";
  std::int64_t count = kept != nullptr ? std::ssize(*kept) : -1;
  world.broadcast(&count, sizeof count, 0, kWhat);
  if (count < 0) return nullptr;
  if (world.size() == 1) return kept;
  auto all = std::make_shared<KeptFiles>();
  auto next = kept != nullptr ? kept->begin() : KeptFiles::const_iterator();
  for (std::int64_t i = 0; i < count; ++i) {
    std::string name = world.rank() == 0 ? next->first : std::string();
    std::string contents = world.rank() == 0 ? next->second : std::string();
    if (world.rank() == 0) ++next;
    name = broadcast_text(world, std::move(name), kWhat);
    all->emplace(std::move(name), broadcast_text(world, std::move(contents), kWhat));
  }
  return all;
}

}  // namespace lockstep
