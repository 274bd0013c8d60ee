import CCurl
import COpenSSL
package import HTTPWire
import Synchronization

/// The libcurl that this process has loaded, its features and its faults.
package struct CurlLibrary: Sendable {
  /// Initialised on first use, once, before any handle is made.
  package static let shared = CurlLibrary()

  /// The version as text: `7.88.1`.
  package let version: String
  /// The version as a number: `0x075801` for 7.88.1.
  package let versionNumber: UInt32
  package let speaksHTTP2: Bool
  package let speaksHTTP3: Bool
  /// Whether TLS is OpenSSL's, which trust evaluation and TLS metrics need.
  package let usesOpenSSL: Bool
  /// The schemes by which it authenticates connections.
  package let connectionSchemes: Set<AuthenticationScheme>
  package let isUsable: Bool

  private init() {
    let hasOpenSSL = openssl_stays_until_the_end() == 1
    isUsable = curl_global_init(Int(CURL_GLOBAL_ALL)) == CURLE_OK && hasOpenSSL
    guard let info = ccurl_version()?.pointee else {
      version = "unknown"
      versionNumber = 0
      speaksHTTP2 = false
      speaksHTTP3 = false
      usesOpenSSL = false
      connectionSchemes = []
      return
    }
    let features = info.features
    func has(_ feature: Int32) -> Bool { features & feature != 0 }
    version = info.version.map { String(cString: $0) } ?? "unknown"
    versionNumber = info.version_num
    speaksHTTP2 = has(CURL_VERSION_HTTP2)
    speaksHTTP3 = has(CURL_VERSION_HTTP3)
    usesOpenSSL = info.ssl_version.map { String(cString: $0).hasPrefix("OpenSSL") } ?? false
    var schemes: Set<AuthenticationScheme> = []
    if has(CURL_VERSION_NTLM) { schemes.insert(.ntlm) }
    if has(CURL_VERSION_SPNEGO) { schemes.insert(.negotiate) }
    connectionSchemes = schemes
  }

  /// Whether percent signs in the name and the password of a proxy are decoded.
  var decodesProxyCredentials: Bool { versionNumber < 0x080800 }

  /// Whether a handle keeps the address of the last field of its previous transfer, whose memory is free. A response
  /// whose first field line begins with white space makes libcurl write there.
  package var keepsFreedFields: Bool { versionNumber >= 0x075300 && versionNumber < 0x080100 }

  /// Whether a handle that keeps such an address is safe because the write callback gets each line of a head before
  /// libcurl stores it (`CURLOPT_HEADER`). Known of 7.88.1 alone, by its source.
  package var showsLinesFirst: Bool { versionNumber == 0x075801 }

  /// Whether a handle must not be used for a second transfer.
  var needsNewHandles: Bool { keepsFreedFields && !showsLinesFirst }

  /// Whether the limit of connections per host can free the connections of a host while they are in use (8.10).
  package var losesHostConnections: Bool { versionNumber >= 0x080A00 && versionNumber < 0x080B00 }

  /// Whether TLS sessions belong to the easy handle, not to the multi handle.
  package var keepsSessionsWithHandles: Bool { versionNumber < 0x080C00 }

  /// Whether connections of HTTP/2 can touch a handle after its transfer (CVE-2026-92392).
  package var touchesEndedHandles: Bool { versionNumber < 0x081700 }

  /// Whether a transfer over HTTP/2 may run forever without progress if the server answers before the end of the
  /// upload. Seen with 7.88, and not since 8.7, where sending was rewritten.
  package var spinsOnEarlyAnswers: Bool { versionNumber < 0x080700 }

  /// Whether transfers that wait for a new connection (`CURLOPT_PIPEWAIT`) stay waiting until another transfer ends if
  /// the connection speaks HTTP/1.1. Seen with 8.14, and not with 7.88.
  package var forgetsWaitingTransfers: Bool { versionNumber >= 0x080000 }

  /// Whether a header field of a request is omitted without an error if its name or its value has more than 300 KiB.
  /// Seen with 8.14, and not with 7.88.
  package var omitsLargeFields: Bool { versionNumber >= 0x080000 }

  /// Whether several spaces between the version and the code of a status line are an error: seen with 8.14, and not
  /// with 7.88.
  package var refusesSpacesBeforeStatus: Bool { versionNumber >= 0x080000 }
}
