import Foundation
import HTTPWire

extension Session {
  /// Makes a stream of bytes to a host and a port. It connects at the first operation.
  ///
  /// The connection is made as for an `https` request: with the same proxies (by `CONNECT`), overrides and guards.
  /// The client identity is that of the options, or the one that the session's delegate chooses when the server
  /// requests one. The connection and the handshake must succeed within `timeoutIntervalForRequest`. The stream ends
  /// after `timeoutIntervalForResource`, a week by default, counted from the first operation, suspended or not.
  ///
  /// ```swift
  /// let stream = session.byteStream(host: "irc.example.com", port: 6697, secure: true)
  /// try await stream.write(Data("NICK ada\r\n".utf8))
  /// let (line, isAtEnd) = try await stream.read(timeout: .seconds(10))
  /// ```
  ///
  /// - Parameters:
  ///   - host: A name or an address. An invalid one fails the first operation with `URLError.badURL`.
  ///   - port: From 1 to 65,535.
  ///   - secure: Whether the stream begins with TLS. Default: `false`; ``ByteStreamRequest/startTLS()`` begins it
  ///     later.
  ///   - change: Changes the options of the session for this stream. Default: no change.
  public func byteStream(
    host: String, port: Int, secure: Bool = false,
    transportOptions change: ((inout TransportOptions) -> Void)? = nil
  ) -> ByteStreamRequest {
    var options = transportOptions
    change?(&options)
    return ByteStreamRequest(
      ByteStreamCore(
        core, host: host, port: port, isSecure: secure, options: change == nil ? nil : options))
  }
}
