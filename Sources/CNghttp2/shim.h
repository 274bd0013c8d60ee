#pragma once
// nghttp2 as Swift sees it. Headers from 1.43 on compile; functions that are younger are weak symbols, because the
// library that runs may be older or newer than the headers.
#include <nghttp2/nghttp2.h>

// 1.61.0; also in the 1.52.0 and 1.43.0 of Debian, with the fix for CVE-2024-28182.
void nghttp2_option_set_max_continuations(nghttp2_option *option, size_t count) __attribute__((weak));

// Raises the number of CONTINUATION frames that one head may have. A library without that limit takes any number.
static inline void cnghttp2_limit_continuations(nghttp2_option *option, size_t count) {
  if (nghttp2_option_set_max_continuations) nghttp2_option_set_max_continuations(option, count);
}
