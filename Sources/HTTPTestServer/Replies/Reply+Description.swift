extension Reply: CustomStringConvertible {
  /// The status, the length of the body and the failure, such as `200, 1001 bytes, closeAfterBody(bytes: 1)`.
  /// Parameterized tests show the text in their names.
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
