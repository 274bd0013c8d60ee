public import Foundation
import HTTPWire

// Reading and writing with handlers, in the order of the calls. As long as a handler is to be called, the stream is
// kept.
extension ByteStreamRequest {
  /// Reads bytes as ``read(atLeast:atMost:timeout:)`` does, and calls a handler.
  ///
  /// - Parameters:
  ///   - least: The minimum number of bytes to wait for. Default, and at least: 1.
  ///   - most: The maximum number of bytes. Default: 65,536.
  ///   - timeout: The time from the call. Default: `nil`, no timeout.
  ///   - queue: The queue of the handler. Default: the main queue.
  ///   - completionHandler: Called once.
  @preconcurrency
  @discardableResult
  public func read(
    atLeast least: Int = 1, atMost most: Int = 65_536, timeout: Duration? = nil,
    queue: DispatchQueue = .main, completionHandler: @escaping @Sendable (Result<Bytes, AFError>) -> Void
  ) -> Self {
    core.read(least, most, timeout) { [self] result in
      queue.async {
        completionHandler(result.map { ($0.data, $0.isAtEnd) })
        withExtendedLifetime(self) {}
      }
    }
    return self
  }

  /// Writes all of `data` as ``write(_:timeout:)`` does, and calls back.
  ///
  /// - Parameters:
  ///   - data: The bytes.
  ///   - timeout: From the call on. Default: `nil`, without end.
  ///   - queue: The queue of the handler. Default: the main queue.
  ///   - completionHandler: Called once.
  @preconcurrency
  @discardableResult
  public func write(
    _ data: Data, timeout: Duration? = nil, queue: DispatchQueue = .main,
    completionHandler: @escaping @Sendable (Result<Void, AFError>) -> Void
  ) -> Self {
    core.write(data, timeout) { [self] result in
      queue.async {
        completionHandler(result)
        withExtendedLifetime(self) {}
      }
    }
    return self
  }

  /// Begins TLS as ``startTLS()`` does, and calls back.
  ///
  /// - Parameters:
  ///   - queue: The queue of the handler. Default: the main queue.
  ///   - completionHandler: Called once.
  @preconcurrency
  @discardableResult
  public func startTLS(
    queue: DispatchQueue = .main, completionHandler: @escaping @Sendable (Result<Void, AFError>) -> Void
  ) -> Self {
    core.secure { [self] result in
      queue.async {
        completionHandler(result)
        withExtendedLifetime(self) {}
      }
    }
    return self
  }
}
