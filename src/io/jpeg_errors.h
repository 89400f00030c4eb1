// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Errors of libjpeg, which ends the program unless its caller takes over: fail_to_caller() jumps back to
// where the caller has set `caller` (setjmp).
#pragma once

#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>

namespace lockstep {

struct JpegErrors {
  jpeg_error_mgr base;  // first: libjpeg knows its address
  std::jmp_buf caller;
  char message[JMSG_LENGTH_MAX];
};

/// The function of jpeg_error_mgr::error_exit. `info->err` is the base of JpegErrors, which gets the message.
[[noreturn]] inline void fail_to_caller(j_common_ptr info) {
  auto* const errors = reinterpret_cast<JpegErrors*>(info->err);
  errors->base.format_message(info, errors->message);
  std::longjmp(errors->caller, 1);
}

/// The same with a message of ours, of fewer than JMSG_LENGTH_MAX bytes.
[[noreturn]] inline void fail_to_caller(j_common_ptr info, const char* message) {
  auto* const errors = reinterpret_cast<JpegErrors*>(info->err);
  errors->base.msg_code = 0;
  std::snprintf(errors->message, sizeof errors->message, "%s", message);
  std::longjmp(errors->caller, 1);
}

}  // namespace lockstep
