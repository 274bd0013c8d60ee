// Preloaded into the runs of `URLSession`, which on Linux always trusts the system's certificates. Opening the system's
// bundle opens the file that BENCH_AUTHORITY names instead. That happens when a connection is established, so it does
// not add to the cost of a request.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef FILE *(*opener)(const char *, const char *);

static FILE *open_instead(const char *symbol, const char *path, const char *mode) {
  opener original = (opener)dlsym(RTLD_NEXT, symbol);
  const char *authority = getenv("BENCH_AUTHORITY");
  if (authority && path && !strcmp(path, "/etc/ssl/certs/ca-certificates.crt")) path = authority;
  return original(path, mode);
}

FILE *fopen(const char *path, const char *mode) { return open_instead("fopen", path, mode); }
FILE *fopen64(const char *path, const char *mode) { return open_instead("fopen64", path, mode); }
