#pragma once
// OpenSSL as Swift can see it: what OpenSSL offers as macros stands here as inline functions.
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/rsa.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

// OpenSSL is not cleaned up when the process ends; see exit.c, which does this before `main`. Called again, it does nothing:
// the call keeps that file in programs that are linked from archives. Returns 0 when OpenSSL cannot be used.
int openssl_stays_until_the_end(void);

static inline long openssl_set_min_version(SSL_CTX *context, int version) {
  return SSL_CTX_set_min_proto_version(context, version);
}
static inline long openssl_set_max_version(SSL_CTX *context, int version) {
  return SSL_CTX_set_max_proto_version(context, version);
}
static inline long openssl_memory_bytes(BIO *bio, char **bytes) {
  return BIO_get_mem_data(bio, bytes);
}
// What a step of a BIO says before it returns without having moved anything.
static inline void openssl_waits_for_nothing(BIO *bio) { BIO_clear_retry_flags(bio); }
static inline void openssl_waits_to_read(BIO *bio) { BIO_set_retry_read(bio); }
static inline void openssl_waits_to_write(BIO *bio) { BIO_set_retry_write(bio); }
static inline EVP_PKEY *openssl_generate_ec_key(const char *curve) {
  return EVP_PKEY_Q_keygen(NULL, NULL, "EC", curve);
}
static inline EVP_PKEY *openssl_generate_rsa_key(size_t bits) {
  return EVP_PKEY_Q_keygen(NULL, NULL, "RSA", bits);
}
static inline long openssl_add_chain_certificate(SSL_CTX *context, X509 *certificate) {
  return SSL_CTX_add0_chain_cert(context, certificate);
}
static inline long openssl_add_chain_certificate_of(SSL *session, X509 *certificate) {
  return SSL_add0_chain_cert(session, certificate);
}
static inline long openssl_allow_partial_writes(SSL_CTX *context) {
  return SSL_CTX_set_mode(
      context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}
// Prepares a client that writes as much as fits, reads several records at once, and holds no buffers while it waits.
static inline void openssl_prepare_client(SSL_CTX *context) {
  SSL_CTX_set_mode(
      context,
      SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
  // The caller keeps the sessions that may be resumed.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
}
static inline void openssl_allow_renegotiation(SSL *session) { SSL_clear_options(session, SSL_OP_NO_RENEGOTIATION); }
static inline void openssl_forbid_renegotiation(SSL *session) { SSL_set_options(session, SSL_OP_NO_RENEGOTIATION); }
static inline long openssl_renegotiation_count(SSL *session) { return SSL_num_renegotiations(session); }
static inline long openssl_set_requested_server_name(SSL *session, const char *name) {
  return SSL_set_tlsext_host_name(session, name);
}

static inline int openssl_certificate_count(const STACK_OF(X509) * stack) { return sk_X509_num(stack); }
static inline X509 *openssl_certificate_at(const STACK_OF(X509) * stack, int index) {
  return sk_X509_value(stack, index);
}
static inline STACK_OF(X509) * openssl_certificate_stack(void) { return sk_X509_new_null(); }
// The stack retains the certificate.
static inline int openssl_push_certificate(STACK_OF(X509) * stack, X509 *certificate) {
  if (X509_up_ref(certificate) != 1) return 0;
  if (sk_X509_push(stack, certificate) > 0) return 1;
  X509_free(certificate);
  return 0;
}
static inline void openssl_free_certificates(STACK_OF(X509) * stack) { sk_X509_pop_free(stack, X509_free); }
// The next certificate, or the next list, of a PEM text. Without a password OpenSSL would ask for one on the terminal
// or standard input if the text is encrypted.
static inline X509 *openssl_next_certificate(BIO *text) { return PEM_read_bio_X509(text, NULL, NULL, (void *)""); }
static inline X509_CRL *openssl_next_list(BIO *text) { return PEM_read_bio_X509_CRL(text, NULL, NULL, (void *)""); }
// Adds the certificates and lists of a PEM text to a store, as X509_STORE_load_file does with a file. Returns 0 if the
// text is malformed or has none.
static inline int openssl_add_trusted(X509_STORE *store, BIO *text) {
  STACK_OF(X509_INFO) *entries = PEM_X509_INFO_read_bio(text, NULL, NULL, (void *)"");
  int count = 0;
  for (int index = 0; count >= 0 && index < sk_X509_INFO_num(entries); index++) {
    X509_INFO *entry = sk_X509_INFO_value(entries, index);
    if (entry->x509) count = X509_STORE_add_cert(store, entry->x509) == 1 ? count + 1 : -1;
    if (count >= 0 && entry->crl) count = X509_STORE_add_crl(store, entry->crl) == 1 ? count + 1 : -1;
  }
  sk_X509_INFO_pop_free(entries, X509_INFO_free);
  return count > 0;
}
// The SSL that a store context verifies the peer of, or NULL.
static inline SSL *openssl_session_of(X509_STORE_CTX *context) {
  return X509_STORE_CTX_get_ex_data(context, SSL_get_ex_data_X509_STORE_CTX_idx());
}
static inline long openssl_request_status(SSL_CTX *context) {
  return SSL_CTX_set_tlsext_status_type(context, TLSEXT_STATUSTYPE_ocsp);
}
static inline long openssl_request_status_of(SSL *session) {
  return SSL_set_tlsext_status_type(session, TLSEXT_STATUSTYPE_ocsp);
}
static inline long openssl_stapled_response(SSL *session, const unsigned char **bytes) {
  return SSL_get_tlsext_status_ocsp_resp(session, bytes);
}
static inline long openssl_set_status_callback(
    SSL_CTX *context, int (*callback)(SSL *, void *), void *argument) {
  if (SSL_CTX_set_tlsext_status_cb(context, callback) != 1) return 0;
  return SSL_CTX_set_tlsext_status_arg(context, argument);
}
// Called in the middle of a verification: the handshake pauses, and calls again when it continues.
static inline int openssl_retry_verification(SSL *session) { return (int)SSL_set_retry_verify(session); }
static inline void openssl_free(void *bytes) { OPENSSL_free(bytes); }
static inline int openssl_error_reason(unsigned long code) { return ERR_GET_REASON(code); }
// RFC 2253, with letters outside of ASCII unescaped.
static inline unsigned long openssl_name_style(void) { return XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB; }

static inline int openssl_name_count(const GENERAL_NAMES *names) { return sk_GENERAL_NAME_num(names); }
// The text of a name of one kind (`GEN_DNS`, `GEN_URI`) or the bytes of an address, or NULL.
static inline const unsigned char *openssl_name_bytes(
    const GENERAL_NAMES *names, int index, int kind, int *count) {
  int found = 0;
  ASN1_STRING *value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, index), &found);
  if (!value || found != kind) return NULL;
  *count = ASN1_STRING_length(value);
  return ASN1_STRING_get0_data(value);
}
static inline int openssl_subtree_count(const STACK_OF(GENERAL_SUBTREE) * trees) {
  return sk_GENERAL_SUBTREE_num(trees);
}
// The DNS name of a subtree of name constraints, or NULL.
static inline const unsigned char *openssl_subtree_name(
    const STACK_OF(GENERAL_SUBTREE) * trees, int index, int *count) {
  const GENERAL_SUBTREE *tree = sk_GENERAL_SUBTREE_value(trees, index);
  int found = 0;
  ASN1_STRING *value = tree ? GENERAL_NAME_get0_value(tree->base, &found) : NULL;
  if (!value || found != GEN_DNS) return NULL;
  *count = ASN1_STRING_length(value);
  return ASN1_STRING_get0_data(value);
}
static inline int openssl_point_count(const CRL_DIST_POINTS *points) { return sk_DIST_POINT_num(points); }
// The full names of a distribution point, or NULL if its list is not the issuer's own or does not cover all reasons.
static inline const GENERAL_NAMES *openssl_point_names(const CRL_DIST_POINTS *points, int index) {
  const DIST_POINT *point = sk_DIST_POINT_value(points, index);
  if (!point || !point->distpoint || point->distpoint->type != 0) return NULL;
  if (point->CRLissuer || point->reasons) return NULL;
  return point->distpoint->name.fullname;
}
// The full names in a distribution point of a list, or NULL.
static inline const GENERAL_NAMES *openssl_list_names(const ISSUING_DIST_POINT *point) {
  if (!point->distpoint || point->distpoint->type != 0) return NULL;
  return point->distpoint->name.fullname;
}
// Names the issuer of the certificate of an entry (RFC 5280 §5.3.3). Returns 1 on success.
static inline int openssl_set_issuer_of_entry(X509_REVOKED *entry, const X509_NAME *issuer) {
  GENERAL_NAMES *names = GENERAL_NAMES_new();
  GENERAL_NAME *name = GENERAL_NAME_new();
  X509_NAME *copy = X509_NAME_dup(issuer);
  int isSet = 0;
  if (names && name && copy) {
    GENERAL_NAME_set0_value(name, GEN_DIRNAME, copy);
    copy = NULL;
    if (sk_GENERAL_NAME_push(names, name) > 0) {
      name = NULL;
      isSet = X509_REVOKED_add1_ext_i2d(entry, NID_certificate_issuer, names, 1, X509V3_ADD_DEFAULT);
    }
  }
  X509_NAME_free(copy);
  GENERAL_NAME_free(name);
  GENERAL_NAMES_free(names);
  return isSet;
}
// Whether an entry of a list has a critical extension that RFC 5280 §5.3 does not define.
static inline int openssl_list_has_unknown_entries(X509_CRL *list) {
  STACK_OF(X509_REVOKED) *entries = X509_CRL_get_REVOKED(list);
  for (int index = 0; index < sk_X509_REVOKED_num(entries); index++) {
    const X509_REVOKED *entry = sk_X509_REVOKED_value(entries, index);
    for (int place = 0; place < X509_REVOKED_get_ext_count(entry); place++) {
      X509_EXTENSION *extension = X509_REVOKED_get_ext(entry, place);
      if (!X509_EXTENSION_get_critical(extension)) continue;
      int kind = OBJ_obj2nid(X509_EXTENSION_get_object(extension));
      if (kind != NID_crl_reason && kind != NID_invalidity_date && kind != NID_certificate_issuer) return 1;
    }
  }
  return 0;
}
static inline int openssl_string_count(const STACK_OF(OPENSSL_STRING) * strings) {
  return sk_OPENSSL_STRING_num(strings);
}
static inline const char *openssl_string_at(const STACK_OF(OPENSSL_STRING) * strings, int index) {
  return sk_OPENSSL_STRING_value(strings, index);
}
// Whether a signature uses a digest that can be forged. Algorithms without a named digest do not count.
static inline int openssl_is_weak_signature(int signature) {
  int digest = NID_undef, key = NID_undef;
  if (OBJ_find_sigid_algs(signature, &digest, &key) != 1) return 1;
  return digest == NID_sha1 || digest == NID_md5 || digest == NID_md4 || digest == NID_md2 || digest == NID_md5_sha1;
}
static inline int openssl_signature_of(const OCSP_BASICRESP *response) {
  const X509_ALGOR *algorithm = OCSP_resp_get0_tbs_sigalg(response);
  return algorithm ? OBJ_obj2nid(algorithm->algorithm) : NID_undef;
}
static inline const EVP_MD *openssl_digest_of(const ASN1_OBJECT *object) {
  return EVP_get_digestbynid(OBJ_obj2nid(object));
}
// OpenSSL takes ownership of a copy of the bytes.
static inline long openssl_staple(SSL *session, const unsigned char *bytes, size_t count) {
  void *copy = OPENSSL_memdup(bytes, count);
  if (!copy) return 0;
  if (SSL_set_tlsext_status_ocsp_resp(session, copy, (long)count) == 1) return 1;
  OPENSSL_free(copy);
  return 0;
}
