// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The contents of synonyms.txt; the definition is generated at build time.
#pragma once

namespace lockstep {

extern const char* const kSynonymsText;

}  // namespace lockstep
