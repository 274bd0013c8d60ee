import CCurl
package import FoundationEssentials

/// Asks responders and fetches lists, on the thread that calls, which waits: never that of a loop.
package enum RevocationDownload {
  /// How long one of them may take, in milliseconds.
  package static let timeLimit = 10_000
  private static let responseLimit = 1 << 16
  package static let listLimit = 16 << 20

  /// What a responder answers; `nil` is no answer.
  package static func response(
    from url: String, to request: Data, timeLimit: Int = timeLimit
  ) -> Data? {
    fetch(url, body: request, limit: responseLimit, timeLimit: timeLimit)
  }

  /// The list at `url`; `nil` when there is none.
  package static func list(
    at url: String, sizeLimit: Int = listLimit, timeLimit: Int = timeLimit
  ) -> Data? {
    fetch(url, body: nil, limit: sizeLimit, timeLimit: timeLimit)
  }

  private static func fetch(_ url: String, body: Data?, limit: Int, timeLimit: Int) -> Data? {
    guard CurlLibrary.shared.isUsable, url.lowercased().hasPrefix("http://"), !url.utf8.contains(0),
      let easy = curl_easy_init()
    else { return nil }
    defer { curl_easy_cleanup(easy) }
    let collector = Collector(limit: limit)
    let headers = curl_slist_append(nil, "Content-Type: application/ocsp-request")
    defer { curl_slist_free_all(headers) }
    return withExtendedLifetime((collector, body)) {
      guard prepare(easy, url, collector, timeLimit) else { return nil }
      if let body {
        let isSet = body.withUnsafeBytes { bytes in
          ccurl_set_long(easy, CURLOPT_POSTFIELDSIZE, bytes.count) == CURLE_OK
            && ccurl_set_pointer(easy, CURLOPT_COPYPOSTFIELDS, bytes.baseAddress) == CURLE_OK
        }
        guard isSet, ccurl_set_list(easy, CURLOPT_HTTPHEADER, headers) == CURLE_OK else { return nil }
      }
      var facts = ccurl_facts()
      guard curl_easy_perform(easy) == CURLE_OK else { return nil }
      ccurl_read_facts(easy, &facts)
      return facts.status == 200 ? collector.data : nil
    }
  }

  private static func prepare(
    _ easy: UnsafeMutableRawPointer, _ url: String, _ collector: Collector, _ timeLimit: Int
  ) -> Bool {
    let numbers: [(CURLoption, Int)] = [
      (CURLOPT_NOSIGNAL, 1), (CURLOPT_TIMEOUT_MS, timeLimit), (CURLOPT_FOLLOWLOCATION, 1),
      (CURLOPT_MAXREDIRS, 3),
      // Plain HTTP alone, before and after redirects: TLS would need another chain to be judged first, and what
      // comes is signed.
      (CURLOPT_PROTOCOLS, Int(CURLPROTO_HTTP)), (CURLOPT_REDIR_PROTOCOLS, Int(CURLPROTO_HTTP)),
    ]
    guard numbers.allSatisfy({ ccurl_set_long(easy, $0.0, $0.1) == CURLE_OK }) else { return false }
    return ccurl_set_string(easy, CURLOPT_URL, url) == CURLE_OK
      && ccurl_set_callback(easy, CURLOPT_WRITEFUNCTION, Collector.write) == CURLE_OK
      && ccurl_set_pointer(easy, CURLOPT_WRITEDATA, Unmanaged.passUnretained(collector).toOpaque())
        == CURLE_OK
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
