import CCurl
import HTTPWire

/// A list of lines in libcurl's form, freed exactly once.
struct HeaderList: ~Copyable {
  private(set) var head: UnsafeMutablePointer<curl_slist>?
  /// Where the next line goes: libcurl would look for the end from the beginning.
  private var last: UnsafeMutablePointer<curl_slist>?
  /// Whether every line could be stored.
  private(set) var isComplete = true

  init() {}

  init(lines: [String]) {
    for line in lines { append(line) }
  }

  /// Lines for `fields` in their order. What libcurl would add by itself is switched off, so that
  /// the fields are all there is.
  init(fields: [HTTPHeader], hasBody: Bool, isChunked: Bool = false) {
    var given = Given()
    var line = ""
    for field in fields {
      given.note(field)
      // What libcurl sends by itself costs it less than a line of ours.
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
    // Over HTTP/2, which frames by itself, libcurl leaves it out.
    if isChunked { append("Transfer-Encoding: chunked") }
    if hasBody && !given.expect { append("Expect:") }
  }

  /// Which fields there are of those that libcurl would add.
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

  /// For every request libcurl compares each of some twenty names with the beginning of each line. These
  /// two, which it never looks for, stand behind a third that it always sends: one line for all of them.
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
