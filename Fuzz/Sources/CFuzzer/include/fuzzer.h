#pragma once
#include <stddef.h>
#include <stdint.h>

// libFuzzer's own entry; it has no header for it.
int LLVMFuzzerRunDriver(int *count, char ***arguments, int (*target)(const uint8_t *bytes, size_t size));
