// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/share_text.h"

#include <algorithm>
#include <cstdint>

namespace lockstep {

std::string broadcast_text(Communicator& communicator, std::string text, const char* what) {
  std::uint64_t size = text.size();
  communicator.broadcast(&size, sizeof size, 0, what);
  text.resize(size);
  communicator.broadcast(text.data(), size, 0, what);
  return text;
}

std::vector<std::string> gather_texts(Communicator& communicator, const std::string& mine, const char* what) {
  const auto ranks = static_cast<std::size_t>(communicator.size());
  std::vector<std::uint64_t> sizes(ranks);
  const std::uint64_t size = mine.size();
  communicator.allgather(&size, sizeof size, sizes.data(), what);
  const std::size_t longest = *std::ranges::max_element(sizes);
  std::vector<char> all(longest * ranks), padded(longest);
  std::ranges::copy(mine, padded.begin());
  communicator.allgather(padded.data(), longest, all.data(), what);
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    texts.emplace_back(all.data() + rank * longest, sizes[rank]);
  return texts;
}

}  // namespace lockstep
