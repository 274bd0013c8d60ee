// The server of the WebSocket rows. Each connection has a thread, and a message costs as little as possible.
//
//   socket-server PORT
//
// Binary messages are dropped and their bytes counted. The first character of a text message decides:
//   ?             is answered by the number of bytes of the binary messages so far
//   #COUNT SIZE   is answered by COUNT binary messages of SIZE bytes
//   others        are sent back
#define _GNU_SOURCE
#include "frames.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { room = 65536, piece = 1 << 20 };

typedef struct {
  int socket;
  size_t used, answered;
  long long dropped;
  uint8_t input[room], output[room];
} connection;

static uint8_t zeros[piece];

static int send_all(int socket, const void *bytes, size_t count) {
  for (size_t done = 0; done < count;) {
    ssize_t sent = send(socket, (const char *)bytes + done, count - done, MSG_NOSIGNAL);
    if (sent <= 0) return 0;
    done += sent;
  }
  return 1;
}

static int flush(connection *c) {
  size_t count = c->answered;
  c->answered = 0;
  return send_all(c->socket, c->output, count);
}

static int answer(connection *c, int opcode, const void *bytes, size_t count) {
  if (c->answered + longest_header + count > room && !flush(c)) return 0;
  c->answered += write_header(c->output + c->answered, opcode, count, NULL);
  memcpy(c->output + c->answered, bytes, count);
  c->answered += count;
  return 1;
}

static int send_messages(connection *c, const char *order) {
  long long count = 0, size = 0;
  if (sscanf(order, "#%lld %lld", &count, &size) != 2 || !flush(c)) return 0;
  for (; count > 0; count--) {
    uint8_t header[longest_header];
    if (!send_all(c->socket, header, write_header(header, op_binary, size, NULL))) return 0;
    for (long long rest = size; rest > 0; rest -= piece)
      if (!send_all(c->socket, zeros, rest < piece ? rest : piece)) return 0;
  }
  return 1;
}

static int answer_text(connection *c, char *text, size_t count) {
  char number[32];
  if (text[0] == '?') return answer(c, op_text, number, snprintf(number, sizeof number, "%lld", c->dropped));
  if (text[0] != '#') return answer(c, op_text, text, count);
  char order[64] = "";
  memcpy(order, text, count < sizeof order - 1 ? count : sizeof order - 1);
  return send_messages(c, order);
}

// Drops the payload of a binary frame, of which `have` bytes were read.
static int drop(connection *c, uint64_t length, size_t have) {
  c->dropped += length;
  for (uint64_t rest = length - have; rest > 0;) {
    ssize_t more = recv(c->socket, NULL, rest < 1 << 24 ? rest : 1 << 24, MSG_TRUNC);
    if (more <= 0) return 0;
    rest -= more;
  }
  return 1;
}

// Handles the complete frames of the input. Returns 0 at the end of the connection.
static int handle_input(connection *c) {
  size_t start = 0, size;
  frame frame;
  while ((size = read_header(c->input + start, c->used - start, &frame))) {
    uint8_t *payload = c->input + start + size;
    size_t have = c->used - start - size;
    if (frame.opcode == op_binary) {
      if (have > frame.length) have = frame.length;
      if (!drop(c, frame.length, have)) return 0;
      start += size + have;
      continue;
    }
    if (have < frame.length) break;
    mask(payload, payload, frame.length, frame.key, 0);
    if (frame.opcode == op_close) return answer(c, op_close, payload, frame.length) && flush(c) && 0;
    if (frame.opcode != op_text || !answer_text(c, (char *)payload, frame.length)) return 0;
    start += size + frame.length;
  }
  memmove(c->input, c->input + start, c->used - start);
  c->used -= start;
  return flush(c);
}

static int handshake(connection *c) {
  char *head = (char *)c->input, *end, value[32], reply[256];
  do {
    ssize_t more = recv(c->socket, head + c->used, room - 1 - c->used, 0);
    if (more <= 0) return 0;
    head[c->used += more] = 0;
  } while (!(end = strstr(head, "\r\n\r\n")));
  char *key = strcasestr(head, "\r\nsec-websocket-key: ");
  if (!key || key > end) return 0;
  accept_value(key + 21, value);
  c->used -= end + 4 - head;
  memmove(head, end + 4, c->used);
  int length = snprintf(reply, sizeof reply,
                        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        "Sec-WebSocket-Accept: %s\r\n\r\n", value);
  return send_all(c->socket, reply, length) && handle_input(c);
}

static void *serve(void *argument) {
  connection *c = argument;
  if (handshake(c)) {
    ssize_t more;
    while ((more = recv(c->socket, c->input + c->used, room - c->used, 0)) > 0) {
      c->used += more;
      if (!handle_input(c)) break;
    }
  }
  close(c->socket);
  free(c);
  return NULL;
}

int main(int count, char **arguments) {
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct rlimit files;
  pthread_attr_t attributes;
  if (count != 2) return 2;
  signal(SIGPIPE, SIG_IGN);
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 65536);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  address.sin_port = htons(atoi(arguments[1]));
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, (void *)&address, sizeof address) || listen(listener, 1024)) {
    perror("socket-server");
    return 1;
  }
  for (;;) {
    pthread_t thread;
    connection *c = calloc(1, sizeof *c);
    if (!c || (c->socket = accept(listener, NULL, NULL)) < 0) {
      free(c);
      continue;
    }
    setsockopt(c->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (pthread_create(&thread, &attributes, serve, c)) close(c->socket), free(c);
  }
}
