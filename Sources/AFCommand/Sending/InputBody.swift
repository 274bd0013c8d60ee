package import Foundation

/// A body from the standard input, or from another source without a size.
package enum InputBody {
  /// All of it, since it is small.
  case data(Data)
  /// A body of unknown length, which can be read once.
  case stream(InputStream)

  /// Reads up to the mark and streams the body if there is more, because servers like bodies with a length.
  ///
  /// - Parameter isChunked: Whether nothing is read ahead, for an input that grows slowly.
  package static func read(
    isChunked: Bool, _ source: @escaping @Sendable (UnsafeMutableRawBufferPointer) throws -> Int
  ) throws -> InputBody {
    if isChunked { return .stream(InputReader(prefix: Data(), source)) }
    var prefix = Data()
    var room = [UInt8](repeating: 0, count: 65_536)
    while prefix.count < mark {
      let count = try room.withUnsafeMutableBytes { try source($0) }
      if count == 0 { return .data(prefix) }
      prefix += room[..<count]
    }
    return .stream(InputReader(prefix: prefix, source))
  }

  private static let mark = 262_144
}

/// A stream over a source that blocks, such as a pipe.
private final class InputReader: InputStream {
  private struct State {
    var prefix: Data
    var status = Stream.Status.notOpen
  }

  private let state: Mutex<State>
  private let source: @Sendable (UnsafeMutableRawBufferPointer) throws -> Int

  init(prefix: Data, _ source: @escaping @Sendable (UnsafeMutableRawBufferPointer) throws -> Int) {
    state = Mutex(State(prefix: prefix))
    self.source = source
    super.init(data: Data())
  }

  override func open() { state.withLock { $0.status = .open } }
  override func close() { state.withLock { $0.status = .closed } }
  override var streamStatus: Stream.Status { state.withLock { $0.status } }
  override var streamError: (any Error)? { nil }
  override var hasBytesAvailable: Bool { true }

  override func getBuffer(
    _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length: UnsafeMutablePointer<Int>
  ) -> Bool {
    false
  }

  override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
    let room = UnsafeMutableRawBufferPointer(start: buffer, count: maxLength)
    let fromPrefix = state.withLock { state in
      let count = min(maxLength, state.prefix.count)
      state.prefix.prefix(count).copyBytes(to: room)
      state.prefix = state.prefix.dropFirst(count)
      return count
    }
    if fromPrefix > 0 { return fromPrefix }
    do {
      let count = try source(room)
      if count == 0 { state.withLock { $0.status = .atEnd } }
      return count
    } catch {
      state.withLock { $0.status = .error }
      return -1
    }
  }
}
