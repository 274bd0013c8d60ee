#pragma once
// OpenSSL as Swift can see it: what OpenSSL offers as macros stands here as inline functions.
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

static inline long openssl_set_min_version(SSL_CTX *context, int version) {
  return SSL_CTX_set_min_proto_version(context, version);
}
static inline long openssl_set_max_version(SSL_CTX *context, int version) {
  return SSL_CTX_set_max_proto_version(context, version);
}
static inline long openssl_memory_bytes(BIO *bio, char **bytes) {
  return BIO_get_mem_data(bio, bytes);
}
static inline EVP_PKEY *openssl_generate_ec_key(const char *curve) {
  return EVP_PKEY_Q_keygen(NULL, NULL, "EC", curve);
}
static inline EVP_PKEY *openssl_generate_rsa_key(size_t bits) {
  return EVP_PKEY_Q_keygen(NULL, NULL, "RSA", bits);
}
static inline long openssl_add_chain_certificate(SSL_CTX *context, X509 *certificate) {
  return SSL_CTX_add0_chain_cert(context, certificate);
}
static inline long openssl_allow_partial_writes(SSL_CTX *context) {
  return SSL_CTX_set_mode(
      context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}
static inline long openssl_set_requested_server_name(SSL *session, const char *name) {
  return SSL_set_tlsext_host_name(session, name);
}
