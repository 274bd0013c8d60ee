package import Alamofire
import Foundation

/// A request, and its body if that is not in the request.
package struct OutgoingRequest {
  package enum Body {
    /// None, or the request's.
    case ofRequest
    case file(URL)
    case stream(InputStream)
    case form(MultipartFormData)
  }

  package var request: URLRequest
  package var body: Body
  /// The body of the request before its compression; `nil` if it was not compressed.
  var plainBody: Data?

  /// Returns the request with its body in memory.
  func requestWithBody() throws -> URLRequest {
    var request = request
    switch body {
    case .ofRequest: break
    case .file(let url): request.httpBody = try Data(contentsOf: url)
    case .form(let form): request.httpBody = try form.encode()
    case .stream:
      throw UsageError(
        "'af sse' takes at most 256 KiB of standard input, and not --chunked; name a file with @FILE.")
    }
    return request
  }

  /// Makes the request of a session, with the body and the login.
  func sent(
    _ request: URLRequest, in session: Session, _ invocation: Invocation, retrier: TransientRetry? = nil
  ) -> DataRequest {
    let sending =
      switch body {
      case .ofRequest: session.request(request, interceptor: retrier)
      case .file(let url): session.upload(url, with: request, interceptor: retrier)
      case .stream(let stream): session.upload(stream, with: request)
      case .form(let form): Self.upload(form, request, in: session, retrier)
      }
    guard invocation.authentication == .digest, let credentials = invocation.credentials else {
      return sending
    }
    return sending.authenticate(username: credentials.user, password: credentials.password ?? "")
  }

  /// Makes the request of a form. The library adds the type of the form, which is removed again if the arguments leave
  /// it out.
  private static func upload(
    _ form: MultipartFormData, _ request: URLRequest, in session: Session, _ retrier: TransientRetry?
  ) -> DataRequest {
    guard request.headers["Content-Type"] == nil else {
      return session.upload(multipartFormData: form, with: request, interceptor: retrier)
    }
    let untyped = Adapter { request, _, completion in
      var request = request
      request.headers.remove(name: "Content-Type")
      completion(.success(request))
    }
    return session.upload(
      multipartFormData: form, with: request,
      interceptor: Interceptor(adapters: [untyped], retriers: [retrier].compactMap { $0 }))
  }
}

/// Makes the request that an invocation describes.
package struct RequestBuilder {
  private let invocation: Invocation
  private let input: () throws -> InputBody

  /// Makes a builder that calls `input` when the body is to be read from the standard input.
  package init(_ invocation: Invocation, input: @escaping () throws -> InputBody) {
    self.invocation = invocation
    self.input = input
  }

  /// Returns the request. Throws `UsageError` if the query cannot be added to the URL, or a file or the input cannot be
  /// read.
  package func outgoing() throws -> OutgoingRequest {
    var invocation = invocation
    invocation.items = try invocation.items.map { try $0.withFileContent() }
    let builder = RequestBuilder(invocation, input: input)
    let (body, data, type) = try builder.body()
    var request = try URLRequest(
      url: builder.url(), method: HTTPMethod(rawValue: invocation.effectiveMethod),
      headers: builder.headers(contentType: type))
    for field in Array(request.headers) + invocation.typedFields.repeated
    where field.value.utf8.contains(where: { $0 == 0x0A || $0 == 0x0D || $0 == 0 }) {
      throw UsageError("The value of the field '\(field.name)' has a line break, which no field can have.")
    }
    request.httpBody = data
    var outgoing = OutgoingRequest(request: request, body: body)
    if invocation.isCompressed { try outgoing.compress() }
    return outgoing
  }

  // MARK: URL

  private func url() throws -> URL {
    guard var components = URLComponents(string: invocation.url) else {
      throw UsageError("'\(invocation.url)' is not a URL.")
    }
    let pairs = invocation.items.compactMap { item in
      if case .query(let name, let value) = item { Self.pair(name, value) } else { nil }
    }
    if !pairs.isEmpty {
      let typed = components.percentEncodedQuery.map { [$0] } ?? []
      components.percentEncodedQuery = (typed.filter { !$0.isEmpty } + pairs).joined(separator: "&")
    }
    guard let url = components.url else { throw UsageError("'\(invocation.url)' is not a URL.") }
    return url
  }

  /// Returns `name=value`, percent-encoded. Every text encodes as UTF-8, so the fallbacks are never needed.
  private static func pair(_ name: String, _ value: String) -> String {
    [name, value].map { $0.addingPercentEncoding(withAllowedCharacters: .afURLQueryAllowed) ?? $0 }
      .joined(separator: "=")
  }

  // MARK: Header fields

  private func headers(contentType: String?) -> HTTPHeaders {
    var headers = HTTPHeaders()
    if let contentType { headers.add(.contentType(contentType)) }
    if (invocation.bodyKind ?? (invocation.hasDataItems ? .json : .form)) == .json {
      headers.add(.accept("application/json, */*;q=0.5"))
    }
    // The saved bytes are the bytes of the server's file, and their number is known beforehand.
    if invocation.output != nil { headers.add(.acceptEncoding("identity")) }
    switch (invocation.authentication, invocation.credentials) {
    case (.basic, let credentials?):
      headers.add(.authorization(username: credentials.user, password: credentials.password ?? ""))
    case (.bearer, let credentials?): headers.add(.authorization(bearerToken: credentials.user))
    // Digest answers a challenge.
    case (.digest, _), (_, nil): break
    }
    for name in invocation.omittedFields { headers.remove(name: name) }
    for header in invocation.typedFields.single { headers.update(header) }
    // The typed type of a form, with its boundary.
    if invocation.hasMultipartForm, let contentType, headers["Content-Type"] != nil {
      headers.update(.contentType(contentType))
    }
    return headers
  }

  // MARK: Body

  private typealias Content = (body: OutgoingRequest.Body, data: Data?, type: String?)

  private func body() throws -> Content {
    let typed = invocation.bodyKind == .form ? Self.formType : "application/json"
    switch invocation.rawBody {
    case .text(let text): return (.ofRequest, Data(text.utf8), typed)
    case .standardInput: return try content(of: input(), type: typed)
    case .file(let path):
      return try file(path, type: invocation.bodyKind == nil ? LocalFile.mediaType(path) : typed)
    case nil: break
    }
    if invocation.bodyKind == .multipart { return try multipart() }
    guard invocation.hasDataItems else { return (.ofRequest, nil, nil) }
    switch invocation.effectiveBodyKind {
    case .json: return (.ofRequest, Data(try json().utf8), "application/json")
    case .form: return (.ofRequest, Data(form().utf8), Self.formType)
    case .multipart: return try multipart()
    }
  }

  private static let formType = "application/x-www-form-urlencoded; charset=utf-8"

  private func content(of input: InputBody, type: String) -> Content {
    switch input {
    case .data(let data): (.ofRequest, data, type)
    case .stream(let stream): (.stream(stream), nil, type)
    }
  }

  /// Returns the content of a file. A regular file is sent with its length and can be sent again; any other is read
  /// once.
  private func file(_ path: String, type: String) throws -> Content {
    try LocalFile.checkReadable(path)
    let url = URL(fileURLWithPath: LocalFile.expanded(path))
    if LocalFile.isRegular(path) { return (.file(url), nil, type) }
    guard let handle = FileHandle(forReadingAtPath: url.path) else {
      throw UsageError("The file '\(path)' cannot be read.")
    }
    let input = try InputBody.read(isChunked: invocation.isChunked) { room in
      let data = try handle.read(upToCount: room.count) ?? Data()
      return data.copyBytes(to: room)
    }
    return content(of: input, type: type)
  }

  private func form() -> String {
    invocation.items.compactMap { item in
      if case .string(let name, let value) = item { Self.pair(name, value) } else { nil }
    }.joined(separator: "&")
  }

  private func multipart() throws -> Content {
    let form = try emptyForm()
    for item in invocation.items {
      switch item {
      case .string(let name, let value): form.append(Data(value.utf8), withName: name)
      case .file(let file): try append(file, to: form)
      default: continue
      }
    }
    // curl has no option for a form without parts.
    if invocation.printsCurl, !invocation.hasDataItems {
      return (.ofRequest, try form.encode(), form.contentType)
    }
    return (.form(form), nil, form.contentType)
  }

  /// Returns a form without parts, with the type and the boundary that are typed.
  private func emptyForm() throws(UsageError) -> MultipartFormData {
    guard let type = invocation.typedFields.single["Content-Type"] else { return MultipartFormData() }
    let boundary = try MultipartType.boundary(of: type)
    let form = MultipartFormData(boundary: boundary)
    // The library checks a boundary when it encodes a form.
    if let boundary, (try? form.encode()) == nil {
      throw UsageError(
        "'\(boundary)' cannot be the boundary of a form; leave it out of Content-Type to get another one.")
    }
    form.contentType = boundary == nil && !type.isEmpty ? "\(type); boundary=\(form.boundary)" : type
    return form
  }

  private func append(_ file: RequestItem.File, to form: MultipartFormData) throws {
    try LocalFile.checkReadable(file.path)
    let url = URL(fileURLWithPath: LocalFile.expanded(file.path))
    let name = file.fileName ?? url.lastPathComponent
    guard LocalFile.isRegular(file.path) else {
      let type = file.type ?? LocalFile.mediaType(name)
      return form.append(
        try LocalFile.content(file.path), withName: file.name, fileName: name, mimeType: type)
    }
    if file.type == nil, file.fileName == nil, !url.pathExtension.isEmpty {
      return form.append(url, withName: file.name)
    }
    form.append(url, withName: file.name, fileName: name, mimeType: file.type ?? LocalFile.mediaType(name))
  }

  /// Returns the value of the data items with their members in the order of the arguments.
  private func json() throws -> String {
    var tree: JSONTree?
    for item in invocation.items {
      switch item {
      case .string(let name, let value):
        tree = try JSONTree.set(
          JSONTree.quoted(value), at: JSONPath(name).steps[...], in: tree, name: name)
      case .json(let name, let text):
        tree = try JSONTree.set(text, at: JSONPath(name).steps[...], in: tree, name: name)
      default: continue
      }
    }
    return try (tree ?? .object([])).text()
  }
}

extension OutgoingRequest {
  /// The largest body that is compressed, in bytes. It is held in memory.
  private static let largestCompressed = 100_000_000

  /// Compresses the body (`Content-Encoding: deflate`), unless it would not become smaller.
  mutating func compress() throws {
    guard request.value(forHTTPHeaderField: "Content-Encoding") == nil else {
      throw UsageError("--compress sets Content-Encoding; leave out the field or the option.")
    }
    try takeBody()
    guard let plain = request.httpBody, !plain.isEmpty else { return }
    /// The compressed request, for its encoder and the main thread.
    let result = Mutex<Result<URLRequest, any Error>?>(nil)
    DeflateRequestCompressor().adapt(request, for: .default) { adapted in result.withLock { $0 = adapted } }
    guard let compressed = try result.withLock({ $0 })?.get(), let body = compressed.httpBody,
      body.count < plain.count
    else { return }
    request = compressed
    plainBody = plain
  }

  /// Makes the body a part of the request.
  private mutating func takeBody() throws {
    switch body {
    case .ofRequest: return
    case .file(let url):
      let size =
        (try FileManager.default.attributesOfItem(atPath: url.path)[.size] as? NSNumber)?.intValue ?? 0
      guard size <= Self.largestCompressed else { throw Self.tooLarge }
      request.httpBody = try Data(contentsOf: url)
    case .form(let form):
      guard form.contentLength <= UInt64(Self.largestCompressed) else { throw Self.tooLarge }
      request.httpBody = try form.encode()
    case .stream(let stream): request.httpBody = try Self.content(of: stream)
    }
    body = .ofRequest
  }

  private static let tooLarge = UsageError(
    "--compress takes a body of at most 100 MB. Write gzip -c FILE | af URL @- Content-Encoding:gzip.")

  private static func content(of stream: InputStream) throws -> Data {
    stream.open()
    defer { stream.close() }
    var data = Data()
    var room = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = stream.read(&room, maxLength: room.count)
      guard count >= 0 else { throw stream.streamError ?? UsageError("The standard input cannot be read.") }
      if count == 0 { return data }
      data += room[..<count]
      guard data.count <= largestCompressed else { throw tooLarge }
    }
  }
}

/// The values of the `Content-Type` field of a form.
enum MultipartType {
  /// Returns the boundary that a value names; `nil` without one. Throws if a quoted string has no end, because servers
  /// would find another boundary there.
  static func boundary(of value: String) throws(UsageError) -> String? {
    for parameter in try parameters(of: value).dropFirst() {
      let parts = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, parts[0].trimmingCharacters(in: blanks).lowercased() == "boundary" else {
        continue
      }
      return unquoted(parts[1].trimmingCharacters(in: blanks))
    }
    return nil
  }

  /// Splits a value at its semicolons. Those in quoted strings separate nothing (RFC 9110 §5.6.4).
  private static func parameters(of value: String) throws(UsageError) -> [String] {
    var parameters: [String] = []
    var current = String.UnicodeScalarView()
    var (isQuoted, isEscaped) = (false, false)
    for scalar in value.unicodeScalars {
      if scalar == ";", !isQuoted {
        parameters.append(String(current))
        current = String.UnicodeScalarView()
        continue
      }
      current.append(scalar)
      if scalar == "\"", !isEscaped { isQuoted.toggle() }
      isEscaped = isQuoted && !isEscaped && scalar == "\\"
    }
    guard !isQuoted else {
      throw UsageError("'\(value)' cannot be a Content-Type; a quotation mark is missing.")
    }
    return parameters + [String(current)]
  }

  /// Returns the content of a quoted string, and any other text as it is.
  private static func unquoted(_ text: String) -> String {
    let scalars = text.unicodeScalars
    guard scalars.count > 1, scalars.first == "\"", scalars.last == "\"" else { return text }
    var content = String.UnicodeScalarView()
    var isEscaped = false
    for scalar in scalars.dropFirst().dropLast() {
      isEscaped = scalar == "\\" && !isEscaped
      if !isEscaped { content.append(scalar) }
    }
    return String(content)
  }

  private static let blanks = CharacterSet(charactersIn: " \t")
}

/// JSON that is built from data items. Values keep the text in which they were written.
indirect enum JSONTree {
  case text(String)
  case object([(name: String, value: JSONTree)])
  case array([JSONTree])

  /// Returns the text, with a space after commas and colons.
  func text() throws -> String {
    switch self {
    case .text(let text): return text
    case .object(let members):
      let texts = try members.map { "\(try Self.quoted($0.name)): \(try $0.value.text())" }
      return "{\(texts.joined(separator: ", "))}"
    case .array(let elements): return "[\(try elements.map { try $0.text() }.joined(separator: ", "))]"
    }
  }

  /// Returns a JSON string.
  static func quoted(_ text: String) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    return String(decoding: try encoder.encode(text), as: UTF8.self)
  }

  /// Puts a value at its position. If the position is occupied, the last value is used, because duplicate names are
  /// undefined in JSON (RFC 8259 §4).
  ///
  /// - Parameter name: The name of the item, for errors.
  static func set(
    _ value: String, at steps: ArraySlice<JSONPath.PathStep>, in tree: JSONTree?, name: String
  ) throws(UsageError) -> JSONTree {
    guard let step = steps.first else { return .text(value) }
    let rest = steps.dropFirst()
    switch (step, tree) {
    case (.key(let key), .object(let members)):
      return .object(try setting(value, key, rest, in: members, name: name))
    case (.key(let key), nil): return .object(try setting(value, key, rest, in: [], name: name))
    case (.index(let index), .array(let elements)):
      return .array(try setting(value, index, rest, in: elements, name: name))
    case (.index(let index), nil): return .array(try setting(value, index, rest, in: [], name: name))
    case (.append, .array(let elements)):
      return .array(try setting(value, elements.count, rest, in: elements, name: name))
    case (.append, nil): return .array(try setting(value, 0, rest, in: [], name: name))
    case (.key, .array):
      throw UsageError("'\(name)' names a member of an object, and an earlier item made an array there.")
    case (.index, .object), (.append, .object):
      throw UsageError("'\(name)' names an element of an array, and an earlier item made an object there.")
    case (_, .text):
      throw UsageError("'\(name)' is inside a value that an earlier item has set.")
    }
  }

  private static func setting(
    _ value: String, _ key: String, _ rest: ArraySlice<JSONPath.PathStep>,
    in members: [(name: String, value: JSONTree)], name: String
  ) throws(UsageError) -> [(name: String, value: JSONTree)] {
    var members = members
    // Names that Unicode calls equal are different names (RFC 8259 §8.3).
    let index = members.firstIndex { $0.name.utf8.elementsEqual(key.utf8) }
    let tree = try set(value, at: rest, in: rest.isEmpty ? nil : index.map { members[$0].value }, name: name)
    if let index, !rest.isEmpty {
      members[index].value = tree
    } else {
      if let index { members.remove(at: index) }
      members.append((name: key, value: tree))
    }
    return members
  }

  /// Sets the value in an element. Elements between the last one and a new one are `null`.
  private static func setting(
    _ value: String, _ index: Int, _ rest: ArraySlice<JSONPath.PathStep>, in elements: [JSONTree],
    name: String
  ) throws(UsageError) -> [JSONTree] {
    var elements = elements
    var present: JSONTree?
    if index < elements.count, !rest.isEmpty { present = elements[index] }
    if case .text("null") = present { present = nil }
    while elements.count <= index { elements.append(.text("null")) }
    elements[index] = try set(value, at: rest, in: present, name: name)
    return elements
  }
}
