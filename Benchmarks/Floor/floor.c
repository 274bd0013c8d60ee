// The floor: what a small GET costs with bare libcurl. One thread, one multi handle, `curl_multi_poll`, and one easy
// handle for each request in flight, with options that are set once. Header lines and body are copied into buffers, as
// any client must.
//
//   floor --url URL --protocol http1|https1|h2 --requests N --concurrency C [--warmup N] [--ca FILE]
//
// Prints one line of JSON, with the keys of `RunFigures`. Exits 1 when a request fails.
#include <curl/curl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

typedef struct {
  const char *url, *protocol, *ca;
  long requests, concurrency, warmup;
} options;

typedef struct {
  char *bytes;
  size_t length, capacity;
} buffer;

typedef struct {
  CURL *handle;
  buffer head, body;
  double began;
} transfer;

typedef struct {
  CURLM *multi;
  transfer *transfers;
  double *latencies;
  long requests, started, done;
} run;

static void fail(const char *what, const char *why) {
  fprintf(stderr, "floor: %s: %s\n", what, why);
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

static size_t append(char *bytes, size_t size, size_t count, void *into) {
  buffer *buffer = into;
  size_t more = size * count;
  if (buffer->length + more > buffer->capacity) {
    buffer->capacity = (buffer->length + more) * 2;
    buffer->bytes = realloc(buffer->bytes, buffer->capacity);
    if (!buffer->bytes) return 0;
  }
  memcpy(buffer->bytes + buffer->length, bytes, more);
  buffer->length += more;
  return more;
}

static long http_version(const options *options) {
  return strcmp(options->protocol, "h2") ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2TLS;
}

static void prepare(transfer *transfer, const options *options) {
  CURL *handle = transfer->handle = curl_easy_init();
  if (!handle) fail("curl_easy_init", "no handle");
  curl_easy_setopt(handle, CURLOPT_URL, options->url);
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_PRIVATE, transfer);
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "floor/1");
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, append);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &transfer->body);
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, append);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, &transfer->head);
  curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, http_version(options));
  if (options->ca) curl_easy_setopt(handle, CURLOPT_CAINFO, options->ca);
  if (http_version(options) != CURL_HTTP_VERSION_1_1) curl_easy_setopt(handle, CURLOPT_PIPEWAIT, 1L);
}

static void start(run *run, transfer *transfer) {
  transfer->head.length = transfer->body.length = 0;
  transfer->began = now();
  run->started++;
  curl_multi_add_handle(run->multi, transfer->handle);
}

static void finish(run *run, CURLMsg *message) {
  CURL *handle = message->easy_handle;
  transfer *transfer;
  long status = 0;
  if (message->data.result) fail("request", curl_easy_strerror(message->data.result));
  curl_easy_getinfo(handle, CURLINFO_PRIVATE, &transfer);
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  if (status != 200 || transfer->body.length == 0) fail("request", "not a response with status 200 and a body");
  run->latencies[run->done++] = now() - transfer->began;
  curl_multi_remove_handle(run->multi, handle);
  if (run->started < run->requests) start(run, transfer);
}

// Performs `requests` requests, at most `concurrency` at a time.
static void perform(run *run, long requests, long concurrency) {
  int running, left;
  CURLMsg *message;
  run->requests = requests;
  run->started = run->done = 0;
  for (long i = 0; i < concurrency && run->started < requests; i++) start(run, &run->transfers[i]);
  while (run->done < requests) {
    curl_multi_perform(run->multi, &running);
    while ((message = curl_multi_info_read(run->multi, &left)))
      if (message->msg == CURLMSG_DONE) finish(run, message);
    if (run->done < requests) curl_multi_poll(run->multi, NULL, 0, 1000, NULL);
  }
}

static double cpu_seconds(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

// The high-water mark of this program alone; ru_maxrss would count the process that started it, too.
static double peak_rss_mb(void) {
  char line[256];
  long kilobytes = 0;
  FILE *status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof line, status))
    if (sscanf(line, "VmHWM: %ld", &kilobytes) == 1) break;
  if (status) fclose(status);
  return kilobytes / 1024.0;
}

static int ascending(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

static options parse(int count, char **arguments) {
  options options = {.protocol = "http1", .requests = 1000, .concurrency = 1, .warmup = -1};
  for (int i = 1; i + 1 < count; i += 2) {
    const char *name = arguments[i], *value = arguments[i + 1];
    if (!strcmp(name, "--url")) options.url = value;
    else if (!strcmp(name, "--protocol")) options.protocol = value;
    else if (!strcmp(name, "--ca")) options.ca = value;
    else if (!strcmp(name, "--requests")) options.requests = atol(value);
    else if (!strcmp(name, "--concurrency")) options.concurrency = atol(value);
    else if (!strcmp(name, "--warmup")) options.warmup = atol(value);
    else fail(name, "no such option");
  }
  if (!options.url) fail("--url", "missing");
  if (options.requests < 1 || options.concurrency < 1) fail("--requests, --concurrency", "at least 1");
  if (options.warmup < 0) options.warmup = options.concurrency * 2 > 200 ? options.concurrency * 2 : 200;
  return options;
}

int main(int count, char **arguments) {
  options options = parse(count, arguments);
  // Both exist when Counts/counts.c is preloaded.
  void (*counts_reset)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "counts_reset");
  void (*counts_read)(char *, size_t) = (void (*)(char *, size_t))dlsym(RTLD_DEFAULT, "counts_read");
  char counts[1024] = "null";

  curl_global_init(CURL_GLOBAL_ALL);
  run run = {.multi = curl_multi_init()};
  run.transfers = calloc(options.concurrency, sizeof *run.transfers);
  run.latencies = calloc(options.requests + options.warmup, sizeof *run.latencies);
  if (!run.multi || !run.transfers || !run.latencies) fail("start", "out of memory");
  curl_multi_setopt(run.multi, CURLMOPT_MAXCONNECTS, options.concurrency + 8);
  for (long i = 0; i < options.concurrency; i++) prepare(&run.transfers[i], &options);

  perform(&run, options.warmup, options.concurrency);
  double cpu = cpu_seconds(), began = now();
  if (counts_reset) counts_reset();
  perform(&run, options.requests, options.concurrency);
  if (counts_read) counts_read(counts, sizeof counts);
  double seconds = now() - began;
  cpu = cpu_seconds() - cpu;

  qsort(run.latencies, run.done, sizeof *run.latencies, ascending);
  printf("{\"requests\":%ld,\"seconds\":%.6f,\"cpu_seconds\":%.6f,\"p50_us\":%.1f,\"p99_us\":%.1f,"
         "\"peak_rss_mb\":%.1f,\"counts\":%s}\n",
         run.done, seconds, cpu, run.latencies[run.done / 2] * 1e6,
         run.latencies[(long)(run.done * 0.99)] * 1e6, peak_rss_mb(), counts);
  return 0;
}
