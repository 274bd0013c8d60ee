import HTTPWire

/// A connection of which more was read than was wanted: the rest is read first. Belongs to the loop's thread.
final class UnreadPipe: Pipe {
  private let pipe: any Pipe
  private var unread: ArraySlice<UInt8>

  init(_ unread: ArraySlice<UInt8>, before pipe: any Pipe) {
    self.unread = unread
    self.pipe = pipe
  }

  var hasUnread: Bool { !unread.isEmpty }
  var descriptor: Int32 { pipe.descriptor }
  var owner: (any PipeOwner)? {
    get { pipe.owner }
    set { pipe.owner = newValue }
  }
  var keepsWrites: Bool { pipe.keepsWrites }

  func read(into room: UnsafeMutableRawBufferPointer) -> PipeStep {
    guard !unread.isEmpty else { return pipe.read(into: room) }
    let count = min(room.count, unread.count)
    room.copyBytes(from: unread.prefix(count))
    unread = unread.dropFirst(count)
    return .moved(count)
  }

  func write(_ bytes: UnsafeRawBufferPointer) -> PipeStep { pipe.write(bytes) }
  func shutReading() { pipe.shutReading() }
  func shutWriting() -> PipeStep { pipe.shutWriting() }
  func close() { pipe.close() }
}
