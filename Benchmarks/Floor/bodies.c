// The floor of large bodies: what moving one costs with bare libcurl and the calls of the system. One thread,
// one easy handle driven by `curl_multi_poll`, buffers as large as the package gives itself for such bodies.
//
//   floor-bodies --row upload-file|download-file|stream-discard --url URL --warmup-url URL --bytes N [--file PATH]
//
// A small GET to `--warmup-url` comes first; what the process holds after it is its idle memory. Then the body: read
// from the file by `read`, written to a new file by `write`, or dropped. Prints one line of JSON, with the keys
// of `BodyFigures`. Exits 1 when something fails or another number of bytes came through.
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

typedef struct {
  const char *row, *url, *warmup, *file;
  long long bytes;
} options;

typedef struct {
  int descriptor;
  long long sent, received;
  char answer[64];
  size_t answered;
} body;

static void fail(const char *what, const char *why) {
  fprintf(stderr, "floor-bodies: %s: %s\n", what, why);
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

static double cpu_seconds(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

// `VmRSS:` is what the program holds now, `VmHWM:` the most it ever held. In megabytes.
static double memory(const char *key) {
  char line[256];
  long kilobytes = 0;
  FILE *status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof line, status))
    if (!strncmp(line, key, strlen(key))) kilobytes = atol(line + strlen(key));
  if (status) fclose(status);
  return kilobytes / 1024.0;
}

static size_t discard(char *bytes, size_t size, size_t count, void *into) {
  body *body = into;
  size_t room = sizeof body->answer - 1 - body->answered, length = size * count;
  memcpy(body->answer + body->answered, bytes, length < room ? length : room);
  body->answered += length < room ? length : room;
  body->received += length;
  return length;
}

static size_t store(char *bytes, size_t size, size_t count, void *into) {
  body *body = into;
  size_t length = size * count, done = 0;
  while (done < length) {
    ssize_t written = write(body->descriptor, bytes + done, length - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return 0;
    done += written;
  }
  body->received += length;
  return length;
}

static size_t load(char *room, size_t size, size_t count, void *from) {
  body *body = from;
  ssize_t length = read(body->descriptor, room, size * count);
  if (length < 0) return CURL_READFUNC_ABORT;
  body->sent += length;
  return length;
}

static void perform(CURLM *multi, CURL *handle) {
  int running = 1, left;
  long status = 0;
  CURLMsg *message;
  curl_multi_add_handle(multi, handle);
  while (curl_multi_perform(multi, &running), running) curl_multi_poll(multi, NULL, 0, 1000, NULL);
  while ((message = curl_multi_info_read(multi, &left)))
    if (message->msg == CURLMSG_DONE && message->data.result) fail("request", curl_easy_strerror(message->data.result));
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  if (status != 200) fail("request", "not a response with status 200");
  curl_multi_remove_handle(multi, handle);
}

static options parse(int count, char **arguments) {
  options options = {0};
  for (int i = 1; i + 1 < count; i += 2) {
    const char *name = arguments[i], *value = arguments[i + 1];
    if (!strcmp(name, "--row")) options.row = value;
    else if (!strcmp(name, "--url")) options.url = value;
    else if (!strcmp(name, "--warmup-url")) options.warmup = value;
    else if (!strcmp(name, "--file")) options.file = value;
    else if (!strcmp(name, "--bytes")) options.bytes = atoll(value);
    else fail(name, "no such option");
  }
  if (!options.row || !options.url || !options.warmup || options.bytes < 1)
    fail("--row, --url, --warmup-url, --bytes", "missing");
  if (strcmp(options.row, "stream-discard") && !options.file) fail("--file", "missing");
  return options;
}

static void prepare(CURL *handle, const options *options, body *body) {
  curl_easy_setopt(handle, CURLOPT_URL, options->url);
  curl_easy_setopt(handle, CURLOPT_BUFFERSIZE, 524288L);
  if (!strcmp(options->row, "upload-file")) {
    body->descriptor = open(options->file, O_RDONLY | O_CLOEXEC);
    curl_easy_setopt(handle, CURLOPT_UPLOAD_BUFFERSIZE, 262144L);
    curl_easy_setopt(handle, CURLOPT_POST, 1L);
    curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)options->bytes);
    curl_easy_setopt(handle, CURLOPT_READFUNCTION, load);
    curl_easy_setopt(handle, CURLOPT_READDATA, body);
  } else if (!strcmp(options->row, "download-file")) {
    body->descriptor = open(options->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, store);
  } else if (strcmp(options->row, "stream-discard")) {
    fail(options->row, "no such row");
  }
  if (body->descriptor < 0) fail(options->file, strerror(errno));
}

int main(int count, char **arguments) {
  options options = parse(count, arguments);
  body body = {0};
  curl_global_init(CURL_GLOBAL_ALL);
  CURLM *multi = curl_multi_init();
  CURL *handle = curl_easy_init();
  if (!multi || !handle) fail("start", "out of memory");
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "floor/1");
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, discard);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &body);
  curl_easy_setopt(handle, CURLOPT_URL, options.warmup);
  perform(multi, handle);
  double idle = memory("VmRSS:");

  body.received = body.answered = 0;
  double cpu = cpu_seconds(), began = now();
  prepare(handle, &options, &body);
  perform(multi, handle);
  if (body.descriptor) close(body.descriptor);
  double seconds = now() - began;
  cpu = cpu_seconds() - cpu;

  // The server of uploads answers with the number of bytes that it read.
  body.answer[body.answered] = 0;
  long long moved = strcmp(options.row, "upload-file") ? body.received : atoll(body.answer);
  if (moved != options.bytes) fail("body", "not the number of bytes that was expected");
  printf("{\"bytes\":%lld,\"seconds\":%.6f,\"cpu_seconds\":%.6f,\"idle_rss_mb\":%.1f,\"peak_rss_mb\":%.1f}\n",
         moved, seconds, cpu, idle, memory("VmHWM:"));
  return 0;
}
