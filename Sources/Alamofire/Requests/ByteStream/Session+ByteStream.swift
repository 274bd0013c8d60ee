import Foundation
import HTTPWire

extension Session {
  /// Makes a stream of bytes to a host and a port. It connects when something is asked of it.
  ///
  /// The way is that of an `https` request: through the same proxies (by `CONNECT`), to the same overrides, with the same
  /// guards. The client identity is that of the options, or the one that the session's delegate chooses when the server
  /// asks for one. It is connected and secured within `timeoutIntervalForRequest`, and over when
  /// `timeoutIntervalForResource` is, suspended or not, counted from the first thing that is asked for: a week, unless the
  /// configuration says otherwise.
  ///
  /// ```swift
  /// let stream = session.byteStream(host: "irc.example.com", port: 6697, secure: true)
  /// try await stream.write(Data("NICK ada\r\n".utf8))
  /// let (line, isAtEnd) = try await stream.read(timeout: .seconds(10))
  /// ```
  ///
  /// - Parameters:
  ///   - host: A name or an address. What is none arrives as `URLError.badURL` in the first thing that is asked for.
  ///   - port: From 1 to 65,535.
  ///   - secure: Whether TLS comes before everything else. Default: `false`; ``ByteStreamRequest/startTLS()`` begins it
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
