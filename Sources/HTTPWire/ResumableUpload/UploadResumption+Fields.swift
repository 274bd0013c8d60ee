// The methods and fields of the requests.
extension UploadResumption {
  /// Returns the method of a request.
  ///
  /// - Parameter original: The method of the caller, which creates an upload of the draft.
  package func method(of request: Request, original: String) -> String {
    switch request {
    case .discovery: "OPTIONS"
    case .creation: dialect == .tus ? "POST" : original
    case .offset: "HEAD"
    case .append: "PATCH"
    case .removal: "DELETE"
    }
  }

  /// Returns the fields that the protocol adds to a request.
  package func fields(of request: Request) -> [HTTPHeader] {
    // Servers need no field for OPTIONS, but some speak of tus only to clients that do.
    guard let dialect, request != .discovery else { return [Self.tusField] }
    switch dialect {
    case .draft: return [Self.interopField(policy.interopVersion)] + draftFields(of: request)
    case .tus: return [Self.tusField] + tusFields(of: request)
    }
  }

  private func draftFields(of request: Request) -> [HTTPHeader] {
    guard let part = request.part else { return [] }
    let isComplete = HTTPHeader(name: "Upload-Complete", value: part.isLast ? "?1" : "?0")
    guard case .append = request else {
      return [isComplete, HTTPHeader(name: "Upload-Length", value: String(length))]
    }
    return [
      isComplete, HTTPHeader(name: "Upload-Offset", value: String(part.offset)),
      .contentType("application/partial-upload"),
    ]
  }

  private func tusFields(of request: Request) -> [HTTPHeader] {
    switch request {
    case .discovery, .offset, .removal: return []
    case .creation:
      let length = HTTPHeader(name: "Upload-Length", value: String(length))
      return [length] + (policy.metadata.map { [HTTPHeader(name: "Upload-Metadata", value: $0)] } ?? [])
    case .append(let part):
      return [
        HTTPHeader(name: "Upload-Offset", value: String(part.offset)),
        .contentType("application/offset+octet-stream"),
      ]
    }
  }

  private static func interopField(_ version: Int64) -> HTTPHeader {
    HTTPHeader(name: "Upload-Draft-Interop-Version", value: String(version))
  }

  private static var tusField: HTTPHeader { HTTPHeader(name: "Tus-Resumable", value: TusSupport.version) }

  /// Whether a field of the caller's request is also sent with a request of the protocol. The fields that describe the
  /// content belong to the request that creates an upload of the draft.
  package func keeps(_ name: String, in request: Request) -> Bool {
    if case .creation(let part) = request, dialect == .draft {
      // The framing and the digest are those of the whole content.
      return part.count == length || !Self.wholeContentFields.contains { FieldName.equal($0, name) }
    }
    return !(Self.contentFields + Self.wholeContentFields).contains { FieldName.equal($0, name) }
  }

  private static let contentFields = [
    "Content-Type", "Content-Encoding", "Content-Language", "Content-Location", "Content-Disposition",
  ]
  private static let wholeContentFields = [
    "Content-Length", "Content-MD5", "Content-Digest", "Digest", "Expect",
  ]
}
