extension Reply: CustomStringConvertible {
  /// The status, the length of the body and the failure, such as `200, 1001 bytes, closeAfterBody(bytes: 1)`. It is in
  /// the names of parameterized tests.
  public var description: String {
    if webSocket != nil { return "WebSocket connection" }
    let text = "\(status), \(body.length) bytes"
    return switch effect {
    case .none: text
    case .raw(let bytes, _): "\(bytes.count) raw bytes"
    default: "\(text), \(effect)"
    }
  }
}
