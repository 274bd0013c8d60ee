#pragma once
// libcurl as Swift can see it: its option calls are variadic, so each kind of argument has an inline
// function of its own here. Nothing in this file decides anything.
//
// Headers of libcurl from 7.81 on compile: names that a supported version lacks, deprecates, or gives another type are
// used in this file alone. Scripts/curl-names checks it.
#include <curl/curl.h>
#include <semaphore.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

// Options and codes that are younger than 7.81, as numbers: a libcurl that lacks an option answers
// CURLE_UNKNOWN_OPTION. The version that runs may be newer or older than the headers.
static const CURLoption ccurl_quick_exit = (CURLoption)(CURLOPTTYPE_LONG + 322);           // CURLOPT_QUICK_EXIT, 7.87.0
static const CURLoption ccurl_protocols = (CURLoption)(CURLOPTTYPE_OBJECTPOINT + 318);     // CURLOPT_PROTOCOLS_STR, 7.85.0
static const CURLoption ccurl_redirect_protocols = (CURLoption)(CURLOPTTYPE_OBJECTPOINT + 319);  // CURLOPT_REDIR_PROTOCOLS_STR, 7.85.0
static const CURLoption ccurl_protocol_mask = (CURLoption)(CURLOPTTYPE_LONG + 181);        // CURLOPT_PROTOCOLS, deprecated in 7.85.0
static const CURLoption ccurl_redirect_protocol_mask = (CURLoption)(CURLOPTTYPE_LONG + 182);  // CURLOPT_REDIR_PROTOCOLS, likewise
static const CURLcode ccurl_function_not_found = (CURLcode)41;   // CURLE_FUNCTION_NOT_FOUND, removed in 8.11.1
static const CURLcode ccurl_unrecoverable_poll = (CURLcode)99;   // CURLE_UNRECOVERABLE_POLL, 7.84.0
static const CURLcode ccurl_too_large = (CURLcode)100;           // CURLE_TOO_LARGE, 8.6.0
static const CURLcode ccurl_ech_required = (CURLcode)101;        // CURLE_ECH_REQUIRED, 8.8.0

// Values of options, which are `int` in some versions and `long` in others.
static const long ccurl_http_1_1 = CURL_HTTP_VERSION_1_1;
static const long ccurl_http_2_tls = CURL_HTTP_VERSION_2TLS;
static const long ccurl_http_2_prior_knowledge = CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE;
static const long ccurl_tls_1_2 = CURL_SSLVERSION_TLSv1_2;
static const long ccurl_tls_1_3 = CURL_SSLVERSION_TLSv1_3;
static const long ccurl_tls_max_none = CURL_SSLVERSION_MAX_NONE;
static const long ccurl_tls_max_1_2 = CURL_SSLVERSION_MAX_TLSv1_2;
static const long ccurl_tls_max_1_3 = CURL_SSLVERSION_MAX_TLSv1_3;

typedef size_t (*ccurl_data_callback)(char *bytes, size_t size, size_t count, void *context);
typedef int (*ccurl_seek_callback)(void *context, curl_off_t offset, int origin);
typedef int (*ccurl_request_callback)(
    void *context, char *remote_address, char *local_address, int remote_port, int local_port);

static inline CURLcode ccurl_set_long(CURL *easy, CURLoption option, long value) {
  return curl_easy_setopt(easy, option, value);
}
static inline CURLcode ccurl_set_offset(CURL *easy, CURLoption option, curl_off_t value) {
  return curl_easy_setopt(easy, option, value);
}
// Allows the schemes of HTTP alone, before and after redirects. With `mask`, CURLPROTO_HTTP or that and
// CURLPROTO_HTTPS, and `names`, the same schemes as a list: libcurl before 7.85 knows the mask alone.
static inline CURLcode ccurl_set_protocols(CURL *easy, long mask, const char *names) {
  if (curl_version_info(CURLVERSION_NOW)->version_num < 0x075500) {
    CURLcode code = curl_easy_setopt(easy, ccurl_protocol_mask, mask);
    return code != CURLE_OK ? code : curl_easy_setopt(easy, ccurl_redirect_protocol_mask, mask);
  }
  CURLcode code = curl_easy_setopt(easy, ccurl_protocols, names);
  return code != CURLE_OK ? code : curl_easy_setopt(easy, ccurl_redirect_protocols, names);
}
static inline CURLcode ccurl_allow_http(CURL *easy) {
  return ccurl_set_protocols(easy, CURLPROTO_HTTP, "http");
}
static inline CURLcode ccurl_allow_http_and_https(CURL *easy) {
  return ccurl_set_protocols(easy, CURLPROTO_HTTP | CURLPROTO_HTTPS, "http,https");
}
static inline CURLcode ccurl_set_pointer(CURL *easy, CURLoption option, const void *value) {
  return curl_easy_setopt(easy, option, value);
}
static inline CURLcode ccurl_set_string(CURL *easy, CURLoption option, const char *value) {
  return curl_easy_setopt(easy, option, value);
}
static inline CURLcode ccurl_set_list(CURL *easy, CURLoption option, struct curl_slist *value) {
  return curl_easy_setopt(easy, option, value);
}
static inline CURLcode ccurl_set_callback(CURL *easy, CURLoption option, ccurl_data_callback value) {
  return curl_easy_setopt(easy, option, value);
}
static inline CURLcode ccurl_set_seek(CURL *easy, ccurl_seek_callback value) {
  return curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, value);
}
static inline CURLcode ccurl_set_before_request(CURL *easy, ccurl_request_callback value, void *context) {
  curl_easy_setopt(easy, CURLOPT_PREREQDATA, context);
  return curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, value);
}
// Called with what libcurl says about a transfer while CURLOPT_VERBOSE is set.
static inline CURLcode ccurl_set_debug(CURL *easy, curl_debug_callback value, void *context) {
  curl_easy_setopt(easy, CURLOPT_DEBUGDATA, context);
  return curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, value);
}
// A share for TLS sessions that one thread uses, or NULL.
static inline CURLSH *ccurl_make_session_share(void) {
  CURLSH *share = curl_share_init();
  if (!share) return NULL;
  if (curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION) == CURLSHE_OK) return share;
  curl_share_cleanup(share);
  return NULL;
}
// The bytes of requests that libcurl has sent for the transfer.
static inline long ccurl_request_bytes(CURL *easy) {
  long count = 0;
  curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &count);
  return count;
}
// Called before a name is looked up that is not cached; NULL for no calls.
static inline CURLcode ccurl_set_on_lookup(CURL *easy, curl_resolver_start_callback value, void *context) {
  curl_easy_setopt(easy, CURLOPT_RESOLVER_START_DATA, context);
  return curl_easy_setopt(easy, CURLOPT_RESOLVER_START_FUNCTION, value);
}
// Called with each new socket, before it is connected.
static inline CURLcode ccurl_set_on_socket(CURL *easy, curl_sockopt_callback value, void *context) {
  curl_easy_setopt(easy, CURLOPT_SOCKOPTDATA, context);
  return curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, value);
}
// Makes the sockets; NULL leaves it to libcurl.
static inline CURLcode ccurl_set_open_socket(CURL *easy, curl_opensocket_callback value, void *context) {
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, context);
  return curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, value);
}
static const curl_socket_t ccurl_bad_socket = CURL_SOCKET_BAD;
// The type of the address is one that the Glibc module has under another name.
static inline const void *ccurl_address(const struct curl_sockaddr *address) { return &address->addr; }
// Called with the `SSL_CTX *` of each new connection, before its handshake.
static inline CURLcode ccurl_set_on_tls(CURL *easy, curl_ssl_ctx_callback value, void *context) {
  curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, context);
  return curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, value);
}
// libcurl copies the bytes.
static inline CURLcode ccurl_set_blob(CURL *easy, CURLoption option, const void *bytes, size_t count) {
  struct curl_blob blob = {(void *)bytes, count, CURL_BLOB_COPY};
  return curl_easy_setopt(easy, option, &blob);
}
static inline CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
  return curl_multi_setopt(multi, option, value);
}

// The next transfer that has ended, or NULL; its result goes to *result.
static inline CURL *ccurl_next_ended(CURLM *multi, CURLcode *result) {
  int left = 0;
  CURLMsg *message;
  while ((message = curl_multi_info_read(multi, &left))) {
    if (message->msg == CURLMSG_DONE) {
      *result = message->data.result;
      return message->easy_handle;
    }
  }
  return NULL;
}
static inline void *ccurl_private(CURL *easy) {
  char *context = NULL;
  curl_easy_getinfo(easy, CURLINFO_PRIVATE, &context);
  return context;
}

// Everything that is measured of a transfer, read in one go. Times are microseconds. What a connection took to come
// about is zero for one that was there already.
typedef struct {
  curl_off_t lookup, connect, secure, pretransfer, first_byte, total;
  curl_off_t uploaded, downloaded;
  long request_bytes, header_bytes, new_connections, local_port, remote_port, verify_result;
  const char *local_address, *remote_address;
} ccurl_facts;

static inline void ccurl_read_facts(CURL *easy, ccurl_facts *facts) {
  memset(facts, 0, sizeof *facts);
  curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &facts->pretransfer);
  curl_easy_getinfo(easy, CURLINFO_STARTTRANSFER_TIME_T, &facts->first_byte);
  curl_easy_getinfo(easy, CURLINFO_TOTAL_TIME_T, &facts->total);
  curl_easy_getinfo(easy, CURLINFO_SIZE_UPLOAD_T, &facts->uploaded);
  curl_easy_getinfo(easy, CURLINFO_SIZE_DOWNLOAD_T, &facts->downloaded);
  curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &facts->request_bytes);
  curl_easy_getinfo(easy, CURLINFO_HEADER_SIZE, &facts->header_bytes);
  curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &facts->new_connections);
  curl_easy_getinfo(easy, CURLINFO_LOCAL_PORT, &facts->local_port);
  curl_easy_getinfo(easy, CURLINFO_PRIMARY_PORT, &facts->remote_port);
  curl_easy_getinfo(easy, CURLINFO_LOCAL_IP, (char **)&facts->local_address);
  curl_easy_getinfo(easy, CURLINFO_PRIMARY_IP, (char **)&facts->remote_address);
  if (facts->new_connections == 0 && facts->pretransfer > 0) return;
  curl_easy_getinfo(easy, CURLINFO_NAMELOOKUP_TIME_T, &facts->lookup);
  curl_easy_getinfo(easy, CURLINFO_CONNECT_TIME_T, &facts->connect);
  curl_easy_getinfo(easy, CURLINFO_APPCONNECT_TIME_T, &facts->secure);
  curl_easy_getinfo(easy, CURLINFO_SSL_VERIFYRESULT, &facts->verify_result);
}

static inline long ccurl_status(CURL *easy) {
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  return status;
}

static inline curl_off_t ccurl_expected_length(CURL *easy) {
  curl_off_t length = -1;
  curl_easy_getinfo(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  return length;
}
static inline long ccurl_new_connections(CURL *easy) {
  long count = 0;
  curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &count);
  return count;
}
// What a proxy answered to CONNECT, and what a SOCKS proxy said.
static inline void ccurl_read_proxy(CURL *easy, long *status, long *reply) {
  *status = 0;
  *reply = 0;
  curl_easy_getinfo(easy, CURLINFO_HTTP_CONNECTCODE, status);
  curl_easy_getinfo(easy, CURLINFO_PROXY_ERROR, reply);
}
// The `errno` of the last attempt to connect, or 0.
static inline long ccurl_system_error(CURL *easy) {
  long error = 0;
  curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &error);
  return error;
}
// The `SSL *` of the connection in use, or NULL.
static inline void *ccurl_tls_session(CURL *easy) {
  struct curl_tlssessioninfo *session = NULL;
  curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &session);
  if (!session || session->backend != CURLSSLBACKEND_OPENSSL) return NULL;
  return session->internals;
}

// The socket of a transfer that only connects, as long as libcurl has it, or CURL_SOCKET_BAD.
static inline curl_socket_t ccurl_active_socket(CURL *easy) {
  curl_socket_t active = CURL_SOCKET_BAD;
  curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &active);
  return active;
}

// A name for a thread of the engine; glibc hides its own function for it from Swift.
static inline void ccurl_name_thread(const void *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

// Constants and types that the Glibc module does not always show.
static inline int ccurl_stream_socket(int family) {
  return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}
// Waits at a semaphore for at most some seconds.
static inline int ccurl_semaphore_wait(sem_t *semaphore, int seconds) {
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += seconds;
  return sem_timedwait(semaphore, &end);
}
static const int ccurl_no_signal = MSG_NOSIGNAL;

// A flag of recv(2) that the Glibc module does not always show.
static const int ccurl_do_not_wait = MSG_DONTWAIT;
// Macros of libcurl with casts that Swift does not import.
static const size_t ccurl_write_pause = CURL_WRITEFUNC_PAUSE;
static const size_t ccurl_read_pause = CURL_READFUNC_PAUSE;
static const size_t ccurl_read_abort = CURL_READFUNC_ABORT;
static const unsigned long ccurl_auth_basic = CURLAUTH_BASIC;
static const unsigned long ccurl_auth_ntlm = CURLAUTH_NTLM;
static const unsigned long ccurl_auth_negotiate = CURLAUTH_NEGOTIATE;
static const unsigned long ccurl_auth_with_name = CURLAUTH_BASIC | CURLAUTH_DIGEST | CURLAUTH_NTLM;
static const unsigned long ccurl_auth_any = CURLAUTH_BASIC | CURLAUTH_DIGEST | CURLAUTH_NTLM | CURLAUTH_NEGOTIATE;
static inline curl_version_info_data *ccurl_version(void) { return curl_version_info(CURLVERSION_NOW); }
