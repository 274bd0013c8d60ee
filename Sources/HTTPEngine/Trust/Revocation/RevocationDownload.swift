import CCurl
package import FoundationEssentials
import Glibc
import HTTPWire

/// Asks responders and fetches lists, on the thread that calls, which waits: never that of a loop.
package enum RevocationDownload {
  /// How long one of them may take, in milliseconds.
  package static let timeLimit = 10_000
  private static let responseLimit = 1 << 16
  package static let listLimit = 16 << 20

  /// What a responder answers; `nil` is no answer.
  package static func response(
    from url: String, to request: Data, publicOnly: Bool, timeLimit: Int = timeLimit
  ) -> Data? {
    fetch(url, body: request, Limits(size: responseLimit, time: timeLimit, publicOnly: publicOnly))
  }

  /// The list at `url`; `nil` when there is none.
  package static func list(
    at url: String, publicOnly: Bool, sizeLimit: Int = listLimit, timeLimit: Int = timeLimit
  ) -> Data? {
    fetch(url, body: nil, Limits(size: sizeLimit, time: timeLimit, publicOnly: publicOnly))
  }

  private struct Limits {
    let size: Int
    let time: Int
    /// Whether addresses are refused that are not of the public Internet.
    let publicOnly: Bool
  }

  private static func fetch(_ url: String, body: Data?, _ limits: Limits) -> Data? {
    guard CurlLibrary.shared.isUsable, url.lowercased().hasPrefix("http://"), !url.utf8.contains(0),
      let easy = curl_easy_init()
    else { return nil }
    defer { curl_easy_cleanup(easy) }
    let collector = Collector(limit: limits.size)
    let headers = curl_slist_append(nil, "Content-Type: application/ocsp-request")
    defer { curl_slist_free_all(headers) }
    return withExtendedLifetime((collector, body)) {
      guard prepare(easy, url, collector, limits) else { return nil }
      if let body {
        let isSet = body.withUnsafeBytes { bytes in
          ccurl_set_long(easy, CURLOPT_POSTFIELDSIZE, bytes.count) == CURLE_OK
            && ccurl_set_pointer(easy, CURLOPT_COPYPOSTFIELDS, bytes.baseAddress) == CURLE_OK
        }
        guard isSet, ccurl_set_list(easy, CURLOPT_HTTPHEADER, headers) == CURLE_OK else { return nil }
      }
      guard curl_easy_perform(easy) == CURLE_OK else { return nil }
      return ccurl_status(easy) == 200 ? collector.data : nil
    }
  }

  private static func prepare(
    _ easy: UnsafeMutableRawPointer, _ url: String, _ collector: Collector, _ limits: Limits
  ) -> Bool {
    let numbers: [(CURLoption, Int)] = [
      (CURLOPT_NOSIGNAL, 1), (CURLOPT_TIMEOUT_MS, limits.time), (CURLOPT_FOLLOWLOCATION, 1),
      (CURLOPT_MAXREDIRS, 3),
      // Plain HTTP alone, before and after redirects: TLS would need another chain to be judged first, and what
      // comes is signed.
      (CURLOPT_PROTOCOLS, Int(CURLPROTO_HTTP)), (CURLOPT_REDIR_PROTOCOLS, Int(CURLPROTO_HTTP)),
    ]
    guard numbers.allSatisfy({ ccurl_set_long(easy, $0.0, $0.1) == CURLE_OK }) else { return false }
    if limits.publicOnly, ccurl_set_open_socket(easy, openPublicSocket, nil) != CURLE_OK { return false }
    return ccurl_set_string(easy, CURLOPT_URL, url) == CURLE_OK
      && ccurl_set_callback(easy, CURLOPT_WRITEFUNCTION, Collector.write) == CURLE_OK
      && ccurl_set_pointer(easy, CURLOPT_WRITEDATA, Unmanaged.passUnretained(collector).toOpaque())
        == CURLE_OK
  }

  /// The address is the one that is connected to, after redirects, too.
  private static let openPublicSocket: curl_opensocket_callback = { _, _, address in
    guard let address, Transfer.address(address)?.isPublic == true else { return ccurl_bad_socket }
    let wanted = address.pointee
    return socket(wanted.family, wanted.socktype | Int32(SOCK_CLOEXEC.rawValue), wanted.protocol)
  }

  /// The bytes of one body, up to a limit.
  private final class Collector {
    private(set) var data = Data()
    private let limit: Int

    init(limit: Int) { self.limit = limit }

    static let write: ccurl_data_callback = { bytes, size, count, context in
      guard let bytes, let context else { return 0 }
      let collector = Unmanaged<Collector>.fromOpaque(context).takeUnretainedValue()
      // Taking fewer bytes than there are ends the transfer.
      guard collector.data.count + size * count <= collector.limit else { return 0 }
      collector.data.append(Data(bytes: bytes, count: size * count))
      return size * count
    }
  }
}
