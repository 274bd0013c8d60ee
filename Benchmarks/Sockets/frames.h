// Frames of WebSocket connections (RFC 6455 §5), as far as the floor and the server of the benchmarks need them.
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { op_text = 1, op_binary = 2, op_close = 8, longest_header = 14 };

typedef struct {
  int opcode, is_final, is_masked;
  uint8_t key[4];
  uint64_t length;
} frame;

// Reads a header. Returns its size, or 0 if bytes are missing.
static size_t read_header(const uint8_t *bytes, size_t count, frame *frame) {
  if (count < 2) return 0;
  size_t size = 2, wide = (bytes[1] & 127) == 126 ? 2 : (bytes[1] & 127) == 127 ? 8 : 0;
  frame->opcode = bytes[0] & 15;
  frame->is_final = bytes[0] >> 7;
  frame->is_masked = bytes[1] >> 7;
  if (count < size + wide + (frame->is_masked ? 4 : 0)) return 0;
  frame->length = wide ? 0 : bytes[1] & 127;
  for (size_t i = 0; i < wide; i++) frame->length = frame->length << 8 | bytes[size + i];
  size += wide;
  if (frame->is_masked) memcpy(frame->key, bytes + size, 4), size += 4;
  return size;
}

// Writes the header of a message in one frame. Returns its size. `key` is NULL for a server.
static size_t write_header(uint8_t *bytes, int opcode, uint64_t length, const uint8_t *key) {
  size_t size = 2, wide = length < 126 ? 0 : length < 65536 ? 2 : 8;
  bytes[0] = 128 | opcode;
  bytes[1] = (key ? 128 : 0) | (wide == 0 ? length : wide == 2 ? 126 : 127);
  for (size_t i = 0; i < wide; i++) bytes[size++] = length >> (8 * (wide - 1 - i));
  if (key) memcpy(bytes + size, key, 4), size += 4;
  return size;
}

// Masks bytes into `target`, which may be `source`. `offset` is their position in the payload.
static void mask(uint8_t *target, const uint8_t *source, size_t count, const uint8_t *key, size_t offset) {
  uint8_t turned[8];
  uint64_t wide;
  size_t i = 0;
  for (int k = 0; k < 8; k++) turned[k] = key[(offset + k) & 3];
  memcpy(&wide, turned, 8);
  for (uint64_t word; i + 8 <= count; i += 8) {
    memcpy(&word, source + i, 8);
    word ^= wide;
    memcpy(target + i, &word, 8);
  }
  for (; i < count; i++) target[i] = source[i] ^ turned[i & 7];
}

// The value of Sec-WebSocket-Accept for a key of 24 characters.
static void accept_value(const char *key, char value[32]) {
  char text[64];
  uint8_t hash[SHA_DIGEST_LENGTH];
  int length = snprintf(text, sizeof text, "%.24s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key);
  SHA1((const uint8_t *)text, length, hash);
  EVP_EncodeBlock((uint8_t *)value, hash, sizeof hash);
}
