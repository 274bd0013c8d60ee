import CCurl
import HTTPWire

/// A list of header lines in libcurl's form, freed exactly once.
struct HeaderList: ~Copyable {
  private(set) var head: UnsafeMutablePointer<curl_slist>?
  /// Whether every line could be stored.
  private(set) var isComplete = true

  init() {}

  /// Lines for `fields` in their order. What libcurl would add by itself is switched off, so that
  /// the fields are all there is.
  init(fields: [HTTPHeader], hasBody: Bool, isChunked: Bool = false) {
    var accepts = false
    var acceptsEncoding = false
    var hasType = false
    var expects = false
    for field in fields {
      // What libcurl sends by itself costs it less than a line of ours.
      if field.name == "Accept", field.value == "*/*" {
        accepts = true
        continue
      }
      // libcurl sends a field without a value only when it is written with a semicolon.
      append(field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)")
      switch field.name.utf8.count {
      case 6:
        accepts = accepts || FieldName.equal(field.name, "Accept")
        expects = expects || FieldName.equal(field.name, "Expect")
      case 12: hasType = hasType || FieldName.equal(field.name, "Content-Type")
      case 15: acceptsEncoding = acceptsEncoding || FieldName.equal(field.name, "Accept-Encoding")
      default: break
      }
    }
    if !accepts { append("Accept:") }
    if !acceptsEncoding { append("Accept-Encoding:") }
    if hasBody && !hasType { append("Content-Type:") }
    // Over HTTP/2, which frames by itself, libcurl leaves it out.
    if isChunked { append("Transfer-Encoding: chunked") }
    if hasBody && !expects { append("Expect:") }
  }

  private mutating func append(_ line: String) {
    guard let longer = curl_slist_append(head, line) else {
      isComplete = false
      return
    }
    head = longer
  }

  deinit {
    curl_slist_free_all(head)
  }
}
