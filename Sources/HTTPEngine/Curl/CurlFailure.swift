import CCurl
import Glibc
package import HTTPWire

/// The meaning of libcurl's codes for a user. All codes are read here.
package enum CurlFailure {
  /// Returns the failure for a code. `verifyResult` is OpenSSL's, for codes of certificates. `isInHead` means that the
  /// head of a response was incomplete, `hasResponse` that a response had begun.
  static func failure(
    _ code: CURLcode, detail: String, host: String, isSecure: Bool, verifyResult: Int, isInHead: Bool,
    hasResponse: Bool, metrics: TransferMetrics?
  ) -> TransportFailure {
    var (kind, advice) = meaning(of: code)
    if code == CURLE_PEER_FAILED_VERIFICATION, let certificate = certificateMeaning(verifyResult) {
      (kind, advice) = certificate
    } else if let better = meaning(of: code, saying: detail) {
      (kind, advice) = better
    } else if code == CURLE_OUT_OF_MEMORY || code == ccurl_too_large, isInHead {
      // A field has more than 100 kB. libcurl has the first code up to 8.5, and the second one since.
      (kind, advice) = headTooLarge
    } else if code == CURLE_BAD_FUNCTION_ARGUMENT, hasResponse {
      // libcurl's code for a line without a colon in a head or among trailers.
      (kind, advice) = malformed
    }
    if !isSecure, code == CURLE_GOT_NOTHING || code == CURLE_RECV_ERROR && !hasResponse {
      // Most servers for TLS end a connection that begins with plain HTTP.
      advice =
        "{host} closed the connection without a response. It failed, or this is a port for TLS; then use https://."
    }
    let said = detail.isEmpty ? String(cString: curl_easy_strerror(code)) : detail
    let sentence = advice.replacing("{host}", with: host)
    return TransportFailure(
      kind, "\(sentence) (libcurl \(code.rawValue): \(said))", curlCode: Int32(code.rawValue),
      metrics: metrics)
  }

  /// Returns the failure for an option that libcurl refused.
  static func unsupported(_ what: String, _ code: CURLcode) -> TransportFailure {
    TransportFailure(
      .unsupportedFeature,
      "\(what) is not possible with libcurl \(CurlLibrary.shared.version): \(String(cString: curl_easy_strerror(code)))",
      curlCode: Int32(code.rawValue))
  }

  /// Returns the meaning of one of libcurl's codes. `{host}` stands for the host in the sentence.
  package static func meaning(of code: Int32) -> (kind: TransportFailure.Kind, sentence: String) {
    meaning(of: CURLcode(UInt32(bitPattern: code)))
  }

  /// The first code that the header of this libcurl does not define.
  package static var codeLimit: Int32 { Int32(CURL_LAST.rawValue) }

  static func meaning(of code: CURLcode) -> (TransportFailure.Kind, String) {
    network(code) ?? security(code) ?? content(code)
      ?? local(code) ?? (.unknown, "The transfer failed in a way that does not concern HTTP.")
  }

  /// Returns the meaning of codes whose message says more than the code.
  private static func meaning(of code: CURLcode, saying detail: String) -> (TransportFailure.Kind, String)? {
    if notTLS.contains(where: detail.contains) { return (.secureConnectionFailed, notTLSMessage) }
    if detail.contains("alert certificate required") {
      return (.clientCertificateRequired, "{host} asks for a client certificate.")
    }
    if detail.contains("Too large response headers") { return headTooLarge }
    if detail.contains("in chunked-encoding") || detail.contains("chunk hex-length") { return malformed }
    return nil
  }

  /// OpenSSL's messages about bytes that are not TLS.
  private static let notTLS = [
    "wrong version number", "packet length too long", "unknown protocol", "http request",
  ]

  private static let notTLSMessage =
    "{host} does not speak TLS on this port: its answer to the handshake is something else. "
    + "If this is a port for plain HTTP, use http://."

  /// Returns the message for a handshake of a stream that failed with a message of OpenSSL. `nil` unless that message
  /// says that the other side does not speak TLS.
  package static func notTLSMessage(_ said: String, host: String) -> String? {
    notTLS.contains(where: said.contains) ? notTLSMessage.replacing("{host}", with: host) : nil
  }

  private static let malformed: (TransportFailure.Kind, String) = (
    .badServerResponse, "The response of {host} is not valid HTTP."
  )
  private static let headTooLarge: (TransportFailure.Kind, String) = (
    .dataLengthExceedsMaximum, "The header of the response of {host} is larger than libcurl takes."
  )

  private static func network(_ code: CURLcode) -> (TransportFailure.Kind, String)? {
    switch code {
    case CURLE_URL_MALFORMAT: (.badURL, "The URL is not valid; check its host, port and spelling.")
    case CURLE_UNSUPPORTED_PROTOCOL:
      (
        .badServerResponse,
        "{host} does not answer with HTTP/1.0 or later; check the port. If this is a port for TLS, use https://."
      )
    case CURLE_COULDNT_RESOLVE_HOST:
      (.cannotFindHost, "The name {host} could not be found; check its spelling and the DNS settings.")
    case CURLE_COULDNT_RESOLVE_PROXY:
      (.cannotFindProxy, "The name of the proxy could not be found; check the proxy settings.")
    case CURLE_COULDNT_CONNECT:
      (
        .cannotConnectToHost,
        "{host} does not accept the connection; check that the server runs on that port."
      )
    case CURLE_PROXY:
      (.cannotConnectToHost, "The proxy refused the connection to {host}; check the proxy settings.")
    case CURLE_OPERATION_TIMEDOUT:
      (.timedOut, "The connection to {host} timed out; check the network, or raise the connect timeout.")
    case CURLE_GOT_NOTHING:
      (.connectionLost, "{host} closed the connection without a response; the request may be sent again.")
    case CURLE_PARTIAL_FILE:
      (.connectionLost, "{host} closed the connection before the response was complete.")
    case CURLE_SEND_ERROR: (.connectionLost, "The connection to {host} broke while the request was sent.")
    case CURLE_RECV_ERROR: (.connectionLost, "The connection to {host} broke while the response was read.")
    case CURLE_NO_CONNECTION_AVAILABLE:
      (.cannotConnectToHost, "No connection to {host} was free; raise the limit of connections per host.")
    case CURLE_INTERFACE_FAILED:
      (.cannotConnectToHost, "The local interface or address could not be used for {host}.")
    default: nil
    }
  }

  private static func security(_ code: CURLcode) -> (TransportFailure.Kind, String)? {
    switch code {
    case CURLE_PEER_FAILED_VERIFICATION:
      (
        .certificateUntrusted,
        "The certificate of {host} is not valid for this host; check the name in the URL."
      )
    case CURLE_SSL_CONNECT_ERROR:
      (
        .secureConnectionFailed,
        "The TLS handshake with {host} failed; check that it speaks TLS 1.2 or later."
      )
    case CURLE_SSL_CERTPROBLEM:
      (
        .clientCertificateRejected,
        "The client certificate could not be used; check it, its key and passphrase."
      )
    case CURLE_SSL_CLIENTCERT:
      (.clientCertificateRequired, "{host} asks for a client certificate.")
    case CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CRL_BADFILE:
      (.certificateUntrusted, "The trusted certificates could not be read; check that the PEM is complete.")
    case CURLE_SSL_ISSUER_ERROR, CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_INVALIDCERTSTATUS:
      (.certificateUntrusted, "The certificate of {host} is not the one that is expected.")
    case CURLE_SSL_CIPHER, CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED, CURLE_SSL_ENGINE_INITFAILED,
      CURLE_USE_SSL_FAILED:
      (.secureConnectionFailed, "The TLS settings for {host} cannot be used; check ciphers and versions.")
    case ccurl_ech_required:
      (.secureConnectionFailed, "{host} cannot be reached with an encrypted ClientHello.")
    case CURLE_SSL_SHUTDOWN_FAILED:
      (.connectionLost, "The secure connection to {host} was not closed properly.")
    case CURLE_LOGIN_DENIED, CURLE_REMOTE_ACCESS_DENIED, CURLE_AUTH_ERROR:
      (.userAuthenticationRequired, "{host} does not accept the credentials.")
    default: nil
    }
  }

  private static func content(_ code: CURLcode) -> (TransportFailure.Kind, String)? {
    switch code {
    case CURLE_WEIRD_SERVER_REPLY: (.badServerResponse, "The response of {host} is not valid HTTP.")
    case CURLE_HTTP_RETURNED_ERROR: (.badServerResponse, "{host} answered with an error.")
    case CURLE_TOO_MANY_REDIRECTS: (.badServerResponse, "{host} redirects without end.")
    case CURLE_BAD_CONTENT_ENCODING:
      (.cannotDecodeContent, "The body from {host} is not in the content coding that its header names.")
    case CURLE_HTTP2, CURLE_HTTP2_STREAM, CURLE_HTTP3, CURLE_QUIC_CONNECT_ERROR:
      (
        .connectionLost,
        "The connection to {host} or its stream was ended by a protocol error; HTTP/1.1 may help."
      )
    case CURLE_CHUNK_FAILED: (.badServerResponse, "The response of {host} is not valid HTTP.")
    case CURLE_FILESIZE_EXCEEDED, ccurl_too_large:
      (.dataLengthExceedsMaximum, "The response of {host} is larger than allowed.")
    case CURLE_RANGE_ERROR, CURLE_BAD_DOWNLOAD_RESUME:
      (.resourceUnavailable, "{host} cannot continue the transfer where it broke off.")
    case CURLE_REMOTE_FILE_NOT_FOUND: (.resourceUnavailable, "{host} does not have the resource.")
    case CURLE_SEND_FAIL_REWIND:
      (.cannotReadBody, "The body would have to be sent again, and it cannot be read a second time.")
    default: nil
    }
  }

  private static func local(_ code: CURLcode) -> (TransportFailure.Kind, String)? {
    switch code {
    case CURLE_OUT_OF_MEMORY: (.resourceUnavailable, "There is not enough memory for the transfer.")
    case CURLE_WRITE_ERROR: (.cannotWriteFile, "The response could not be stored.")
    case CURLE_READ_ERROR, CURLE_UPLOAD_FAILED:
      (.cannotReadBody, "The body of the request could not be read.")
    case CURLE_FILE_COULDNT_READ_FILE: (.resourceUnavailable, "The file could not be read.")
    case CURLE_ABORTED_BY_CALLBACK: (.cancelled, "The transfer was stopped.")
    case CURLE_NOT_BUILT_IN, CURLE_UNKNOWN_OPTION, ccurl_function_not_found, CURLE_SETOPT_OPTION_SYNTAX:
      (.unsupportedFeature, "This version of libcurl lacks a feature that the request needs.")
    case CURLE_FAILED_INIT, CURLE_BAD_FUNCTION_ARGUMENT, ccurl_unrecoverable_poll, CURLE_AGAIN,
      CURLE_RECURSIVE_API_CALL:
      (.unknown, "libcurl failed in an unexpected way; please report this.")
    default: nil
    }
  }

  /// Returns the meaning of OpenSSL's verification results (`X509_V_ERR_…`) that a user can act on.
  private static func certificateMeaning(_ result: Int) -> (TransportFailure.Kind, String)? {
    switch result {
    case 9:
      (
        .certificateNotYetValid,
        "The certificate of {host} is not valid yet; check the clock of this machine."
      )
    case 10: (.certificateHasBadDate, "The certificate of {host} has expired.")
    case 2, 18, 19, 20, 21:
      (
        .certificateHasUnknownRoot,
        "The certificate of {host} does not lead to a trusted root; add its authority to the trust store if it is yours."
      )
    case 0: nil
    default: (.certificateUntrusted, "The certificate of {host} is not trusted.")
    }
  }
}

extension CurlFailure {
  /// Returns the failure of a transfer for which no file descriptor was left; `nil` when the transfer failed for
  /// another reason.
  ///
  /// libcurl reports such a transfer as a host that cannot be connected to or found, and tells no reason (7.88).
  ///
  /// - Parameters:
  ///   - systemError: The `errno` of the last attempt to connect; 0 when there was none (`CURLINFO_OS_ERRNO`).
  ///   - probe: Returns the `errno` of an attempt to get some descriptors; `nil` when they are there.
  package static func lackOfDescriptors(
    _ code: Int32, host: String, systemError: Int32, metrics: TransferMetrics?,
    probe: (_ count: Int) -> Int32? = descriptorProbe
  ) -> TransportFailure? {
    let reason: Int32? =
      switch CURLcode(UInt32(bitPattern: code)) {
      case CURLE_COULDNT_CONNECT where systemError != 0: systemError
      case CURLE_COULDNT_CONNECT: probe(1)
      // The sockets and files of the resolver are closed again.
      case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: probe(4)
      default: nil
      }
    switch reason {
    case EMFILE:
      return TransportFailure(
        .resourceUnavailable,
        "No connection to \(host) could be made because the process has no file descriptors left. "
          + "Close files and connections, or raise the limit (ulimit -n, LimitNOFILE of systemd).",
        curlCode: code, metrics: metrics)
    case ENFILE:
      return TransportFailure(
        .resourceUnavailable,
        "No connection to \(host) could be made because the machine has no file descriptors left. "
          + "Close files and connections, or raise the limits (fs.file-max, ulimit -n).",
        curlCode: code, metrics: metrics)
    default: return nil
    }
  }

  /// Opens some descriptors and closes them.
  package static func descriptorProbe(_ count: Int) -> Int32? {
    var opened: [Int32] = []
    defer { for descriptor in opened { close(descriptor) } }
    for _ in 0..<count {
      let descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
      guard descriptor >= 0 else { return errno }
      opened.append(descriptor)
    }
    return nil
  }
}
