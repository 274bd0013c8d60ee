import HTTPWire

// Samples of the comments on the close codes of web sockets; see `SampleTests`.

private func applicationCode() -> WebSocketCloseCode {
  let code = WebSocketCloseCode(rawValue: 4001)
  return code
}
