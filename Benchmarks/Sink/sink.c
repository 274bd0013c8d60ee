// A server for uploads that discards what it receives. The kernel drops the bytes, so that the server costs as little
// as possible and the client never waits for it. HTTP/1.1, one connection at a time.
//
//   sink PORT
//
// Answers each request with status 200 and the number of bytes that it read, in decimal. The body must have a
// Content-Length. nginx would store such a body in a file first.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { head_room = 65536 };

static int say(int connection, const char *text) {
  size_t length = strlen(text);
  return send(connection, text, length, MSG_NOSIGNAL) == (ssize_t)length;
}

// Reads up to the empty line. Returns how many bytes of the body came with it, -1 at the end of the connection.
static long long read_head(int connection, char *head) {
  size_t length = 0;
  char *end = NULL;
  while (!end) {
    if (length == head_room) return -1;
    ssize_t more = recv(connection, head + length, head_room - length, 0);
    if (more <= 0) return -1;
    length += more;
    end = memmem(head, length, "\r\n\r\n", 4);
  }
  *end = 0;
  return head + length - (end + 4);
}

static void serve(int connection) {
  static char head[head_room];
  long long received;
  while ((received = read_head(connection, head)) >= 0) {
    char *field = strcasestr(head, "\r\ncontent-length:"), answer[64], reply[256];
    long long length = field ? atoll(field + 17) : 0;
    if (strcasestr(head, "\r\nexpect: 100-continue") && !say(connection, "HTTP/1.1 100 Continue\r\n\r\n")) return;
    while (received < length) {
      long long rest = length - received;
      ssize_t more = recv(connection, NULL, rest < 1 << 24 ? rest : 1 << 24, MSG_TRUNC);
      if (more <= 0) return;
      received += more;
    }
    snprintf(answer, sizeof answer, "%lld\n", received);
    snprintf(reply, sizeof reply, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n\r\n%s",
             strlen(answer), answer);
    if (!say(connection, reply)) return;
  }
}

int main(int count, char **arguments) {
  int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (count != 2) return 2;
  signal(SIGPIPE, SIG_IGN);
  address.sin_port = htons(atoi(arguments[1]));
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, (void *)&address, sizeof address) || listen(listener, 16)) {
    perror("sink");
    return 1;
  }
  for (;;) {
    int connection = accept(listener, NULL, NULL);
    if (connection < 0) continue;
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    serve(connection);
    close(connection);
  }
}
