import CCurl
import HTTPWire

/// A list of lines in libcurl's form, freed exactly once.
struct HeaderList: ~Copyable {
  private(set) var head: UnsafeMutablePointer<curl_slist>?
  /// The last line. libcurl would search for it from the first one.
  private var last: UnsafeMutablePointer<curl_slist>?
  /// Whether every line could be stored.
  private(set) var isComplete = true

  init() {}

  init(lines: [String]) {
    for line in lines { append(line) }
  }

  /// Makes the lines of `fields` in their order. Fields that libcurl would add by itself are switched off.
  init(fields: [HTTPHeader], hasBody: Bool, isChunked: Bool = false) {
    var given = Given()
    var line = ""
    for field in fields {
      given.note(field)
      // A field that libcurl adds by itself costs less than a line of the list.
      if field.name == "Accept", field.value == "*/*" { continue }
      if Self.joins(field, after: line) {
        line += "\r\n\(field.name): \(field.value)"
        continue
      }
      append(line)
      // libcurl sends a field without a value only when it is written with a semicolon.
      line = field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)"
    }
    append(line)
    if !given.accept { append("Accept:") }
    if hasBody && !given.contentType { append("Content-Type:") }
    // libcurl omits this field over HTTP/2, which has its own framing.
    if isChunked { append("Transfer-Encoding: chunked") }
    if hasBody && !given.expect { append("Expect:") }
  }

  /// The fields of the request that libcurl would otherwise add.
  private struct Given {
    var accept = false
    var contentType = false
    var expect = false

    mutating func note(_ field: HTTPHeader) {
      switch field.name.utf8.count {
      case 6:
        accept = accept || FieldName.equal(field.name, "Accept")
        expect = expect || FieldName.equal(field.name, "Expect")
      case 12: contentType = contentType || FieldName.equal(field.name, "Content-Type")
      default: break
      }
    }
  }

  /// For every request libcurl compares each of some twenty names with the beginning of each line. libcurl never looks
  /// for these two. They follow a third field, which is always sent, in one line.
  private static func joins(_ field: HTTPHeader, after line: String) -> Bool {
    (field.name == "Accept-Language" || field.name == "User-Agent") && !field.value.isEmpty
      && line.hasPrefix("Accept-Encoding: ")
  }

  private mutating func append(_ line: String) {
    guard !line.isEmpty else { return }
    guard let longer = curl_slist_append(last, line) else {
      isComplete = false
      return
    }
    last = longer.pointee.next ?? longer
    head = head ?? longer
  }

  deinit {
    curl_slist_free_all(head)
  }
}
