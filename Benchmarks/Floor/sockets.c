// The floor of WebSocket connections: what messages cost with plain sockets. One thread, `poll`, and buffers as large
// as the package's. Frames are masked with random keys, texts are checked for UTF-8, and each message is received into
// separate memory, as in any client.
//
//   floor-sockets --row ROW --port PORT --messages N --size BYTES --window N --connections N
//
// The rows are the cases of `SocketRow`. An echo keeps `window` messages in flight. Prints one line of JSON, with the
// keys of `SocketFigures`. Exits 1 when something fails.
#define _GNU_SOURCE
#include "../Sockets/frames.h"
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { room = 65536, piece = 262144 };

typedef struct {
  const char *row;
  int port;
  long messages, size, window, connections;
} options;

typedef struct {
  int socket;
  // Received bytes that are not read yet.
  uint8_t *input;
  size_t start, used;
  // Frames that are not written yet.
  uint8_t *output;
  size_t sent, waiting;
} connection;

static void fail(const char *what, const char *why) {
  fprintf(stderr, "floor-sockets: %s: %s\n", what, why);
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

static double cpu_seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
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

// Masking keys are drawn in blocks, as in the package.
static const uint8_t *next_key(void) {
  static uint8_t keys[64][4];
  static int left;
  if (!left && getrandom(keys, sizeof keys, 0) == sizeof keys) left = 64;
  return keys[--left];
}

static int is_utf8(const uint8_t *bytes, size_t count) {
  uint64_t word;
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    memcpy(&word, bytes + i, 8);
    if (word & 0x8080808080808080) return 0;
  }
  for (; i < count; i++)
    if (bytes[i] & 128) return 0;
  return 1;  // The messages of the benchmark are ASCII.
}

static void wait_for(connection *c, short events) {
  struct pollfd file = {.fd = c->socket, .events = events};
  if (poll(&file, 1, 30000) != 1) fail("poll", "nothing happens");
}

// Writes as much of the output as is possible without waiting.
static void flush(connection *c) {
  while (c->waiting) {
    ssize_t count = send(c->socket, c->output + c->sent, c->waiting, MSG_NOSIGNAL);
    if (count < 0 && errno == EAGAIN) return;
    if (count < 0) fail("send", strerror(errno));
    c->sent += count;
    c->waiting -= count;
  }
  c->sent = 0;
}

static void flush_all(connection *c) {
  for (flush(c); c->waiting; flush(c)) wait_for(c, POLLOUT);
}

// Reads once. Returns 0 if no bytes have arrived.
static size_t receive(connection *c, uint8_t *bytes, size_t count) {
  ssize_t more = recv(c->socket, bytes, count, 0);
  if (more < 0 && errno == EAGAIN) return 0;
  if (more <= 0) fail("recv", more ? strerror(errno) : "the server has ended the connection");
  return more;
}

static void fill(connection *c) {
  memmove(c->input, c->input + c->start, c->used -= c->start);
  c->start = 0;
  for (size_t more = 0; !more; c->used += more) {
    wait_for(c, POLLIN);
    more = receive(c, c->input + c->used, room - c->used);
  }
}

static void add_text(connection *c, const char *text, size_t count) {
  const uint8_t *key = next_key();
  uint8_t *end = c->output + c->sent + c->waiting;
  if (c->sent + c->waiting + longest_header + count > piece) fail("output", "too many messages");
  size_t size = write_header(end, op_text, count, key);
  mask(end + size, (const uint8_t *)text, count, key, 0);
  c->waiting += size + count;
}

// Returns a complete small message, which the caller frees, or NULL if bytes are missing.
static char *next_text(connection *c, size_t *count) {
  frame frame;
  size_t size = read_header(c->input + c->start, c->used - c->start, &frame);
  if (!size || c->used - c->start - size < frame.length) return NULL;
  uint8_t *payload = c->input + c->start + size;
  if (frame.opcode != op_text || !frame.is_final || !is_utf8(payload, frame.length)) fail("frame", "not a text");
  char *text = malloc(frame.length + 1);
  memcpy(text, payload, frame.length);
  text[*count = frame.length] = 0;
  c->start += size + frame.length;
  return text;
}

static char *wait_for_text(connection *c, size_t *count) {
  for (char *text;; fill(c))
    if ((text = next_text(c, count))) return text;
}

static void open_connection(connection *c, int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int on = 1;
  char head[256], value[32], *end = NULL;
  uint8_t nonce[16], key[25];
  address.sin_port = htons(port);
  *c = (connection){.socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (c->socket < 0 || connect(c->socket, (void *)&address, sizeof address)) fail("connect", strerror(errno));
  setsockopt(c->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fcntl(c->socket, F_SETFL, O_NONBLOCK);
  c->input = malloc(room);
  c->output = malloc(piece);
  if (getrandom(nonce, sizeof nonce, 0) != sizeof nonce) fail("getrandom", strerror(errno));
  EVP_EncodeBlock(key, nonce, sizeof nonce);
  c->waiting = snprintf((char *)c->output, piece,
                        "GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUser-Agent: floor/1\r\nUpgrade: websocket\r\n"
                        "Connection: Upgrade\r\nSec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n\r\n", port, key);
  for (flush_all(c); !end; end = memmem(c->input, c->used, "\r\n\r\n", 4)) fill(c);
  snprintf(head, sizeof head, "%.*s", (int)(end - (char *)c->input), c->input);
  accept_value((char *)key, value);
  if (strncmp(head, "HTTP/1.1 101 ", 13) || !strstr(head, value)) fail("handshake", head);
  c->start = end + 4 - (char *)c->input;
}

// MARK: The rows

static void echo(connection *c, const options *options, long messages) {
  char text[options->size];
  memset(text, 'a', sizeof text);
  long sent = 0, received = 0;
  for (; sent < options->window && sent < messages; sent++) add_text(c, text, sizeof text);
  for (flush_all(c); received < messages; flush_all(c)) {
    size_t count;
    fill(c);
    for (char *echo; (echo = next_text(c, &count)); received++) {
      if (count != sizeof text) fail("echo", "not the message that was sent");
      if (sent < messages) add_text(c, text, sizeof text), sent++;
      free(echo);
    }
  }
}

static void send_messages(connection *c, const options *options) {
  size_t count;
  for (long i = 0; i < options->messages; i++) {
    uint8_t *message = malloc(options->size);
    const uint8_t *key = next_key();
    memset(message, i, options->size);
    size_t header = write_header(c->output, op_binary, options->size, key);
    for (long done = 0; done < options->size; header = 0) {
      size_t part = options->size - done;
      if (part > piece - header) part = piece - header;
      mask(c->output + header, message + done, part, key, done);
      c->waiting = header + part;
      flush_all(c);
      done += part;
    }
    free(message);
  }
  add_text(c, "?", 1);
  flush_all(c);
  char *answer = wait_for_text(c, &count);
  if (atoll(answer) != (long long)options->messages * options->size) fail("server", answer);
  free(answer);
}

static void receive_messages(connection *c, const options *options) {
  char order[64];
  add_text(c, order, snprintf(order, sizeof order, "#%ld %ld", options->messages, options->size));
  flush_all(c);
  for (long i = 0; i < options->messages; i++) {
    frame frame;
    size_t size;
    while (!(size = read_header(c->input + c->start, c->used - c->start, &frame))) fill(c);
    c->start += size;
    if (frame.opcode != op_binary || frame.length != (uint64_t)options->size) fail("frame", "not the message");
    uint8_t *message = malloc(frame.length);
    size_t done = c->used - c->start < frame.length ? c->used - c->start : frame.length;
    memcpy(message, c->input + c->start, done);
    c->start += done;
    while (done < frame.length) {
      size_t more = receive(c, message + done, frame.length - done);
      if (!more) wait_for(c, POLLIN);
      done += more;
    }
    free(message);
  }
}

static options parse(int count, char **arguments) {
  options options = {.messages = 1, .size = 64, .window = 1, .connections = 1};
  for (int i = 1; i + 1 < count; i += 2) {
    const char *name = arguments[i], *value = arguments[i + 1];
    if (!strcmp(name, "--row")) options.row = value;
    else if (!strcmp(name, "--port")) options.port = atoi(value);
    else if (!strcmp(name, "--messages")) options.messages = atol(value);
    else if (!strcmp(name, "--size")) options.size = atol(value);
    else if (!strcmp(name, "--window")) options.window = atol(value);
    else if (!strcmp(name, "--connections")) options.connections = atol(value);
    else fail(name, "no such option");
  }
  if (!options.row || !options.port) fail("--row, --port", "missing");
  return options;
}

static void perform(connection *connections, const options *options) {
  if (!strncmp(options->row, "socket-echo", 11)) echo(connections, options, options->messages);
  else if (!strncmp(options->row, "socket-send", 11)) send_messages(connections, options);
  else if (!strncmp(options->row, "socket-receive", 14)) receive_messages(connections, options);
  else if (strcmp(options->row, "socket-idle")) fail(options->row, "no such row");
  else
    // All of them stay open.
    for (long i = 1; i <= options->connections; i++) {
      open_connection(&connections[i], options->port);
      echo(&connections[i], options, 1);
    }
}

int main(int count, char **arguments) {
  options options = parse(count, arguments), warmup = {.size = 64, .window = 1};
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  // Both exist when Counts/counts.c is preloaded.
  void (*counts_reset)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "counts_reset");
  void (*counts_read)(char *, size_t) = (void (*)(char *, size_t))dlsym(RTLD_DEFAULT, "counts_read");
  char counts[1024] = "null";

  // The first connection echoes some messages before the measurement.
  connection *connections = calloc(options.connections + 1, sizeof *connections);
  if (!connections) fail("start", "out of memory");
  open_connection(connections, options.port);
  echo(connections, &warmup, 200);
  double idle = memory("VmRSS:");

  double cpu = cpu_seconds(), began = now();
  if (counts_reset) counts_reset();
  perform(connections, &options);
  if (counts_read) counts_read(counts, sizeof counts);
  double seconds = now() - began;
  cpu = cpu_seconds() - cpu;
  printf("{\"messages\":%ld,\"seconds\":%.6f,\"cpu_seconds\":%.6f,\"idle_rss_mb\":%.2f,\"peak_rss_mb\":%.2f,"
         "\"counts\":%s}\n",
         options.messages, seconds, cpu, idle, memory("VmHWM:"), counts);
  return 0;
}
