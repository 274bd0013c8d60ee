package import FoundationEssentials
import Glibc
import HTTPWire

/// The response of a transfer as far as it has arrived.
struct ReceivedResponse {
  var assembly = ResponseAssembly()
  /// Whether the last output of libcurl was a part of a line of the head, and not its end.
  var endsInsideLine = false
  var chunks = ChunkedBody()
  var coding = BodyCoding()
  var bodyEnd = BodyEnd.framed

  /// Forgets everything, because another response begins.
  mutating func restart(headerSizeLimit: Int, bodySizeLimit: Int64?) {
    assembly.restart(headerSizeLimit: headerSizeLimit, bodySizeLimit: bodySizeLimit)
    endsInsideLine = false
    if chunks.hasBegun { chunks = ChunkedBody() }
    coding = BodyCoding()
    bodyEnd = .framed
  }

  /// Makes neither the coding nor the end of the body matter, because the body is dropped.
  mutating func ignoreBody() {
    coding = BodyCoding()
    bodyEnd = .framed
  }
}

/// The progress of reading a chunked body.
struct ChunkedBody {
  var reader = ChunkedReader()
  /// The number of bytes that were read, and that libcurl delivers again.
  var readAhead = 0
  var hasBegun = false
}

/// The event that ends a response body.
enum BodyEnd {
  /// The length, the last chunk or nothing that could be cut off.
  case framed
  /// The end of a stream of HTTP/2.
  case stream
  /// The end of a connection that is secured by TLS.
  case secureConnection(ConnectionClosure)
}

/// The bytes of one body. A small body is copied, and the buffer is used for the next transfer. A large body leaves
/// with the memory of the buffer, so that it is never in memory twice.
package struct BodyBuffer: ~Copyable {
  private static let largestCopy = 32_768
  /// The largest reservation for a length that a server has announced.
  private static let largestReservation = 64 << 20

  private var base: UnsafeMutableRawPointer?
  private var capacity = 0
  package private(set) var count = 0

  package init() {}

  deinit {
    free(base)
  }

  package mutating func reserve(_ bytes: Int) -> Bool {
    grow(to: min(bytes, Self.largestReservation))
  }

  /// Returns false if there is no memory.
  package mutating func append(_ bytes: UnsafeRawPointer, count added: Int) -> Bool {
    let (needed, overflow) = count.addingReportingOverflow(added)
    guard !overflow else { return false }
    if needed > capacity, !grow(to: max(needed, capacity * 2, 4096)) { return false }
    guard let base else { return added == 0 }
    memcpy(base + count, bytes, added)
    count = needed
    return true
  }

  /// Removes and returns the bytes; `nil` if there are none.
  package mutating func take() -> Data? {
    guard count > 0, let base else { return nil }
    defer { count = 0 }
    if count <= Self.largestCopy { return Data(bytes: base, count: count) }
    let exact = capacity - count > count / 8 ? realloc(base, count) ?? base : base
    let data = Data(bytesNoCopy: exact, count: count, deallocator: .free)
    self.base = nil
    capacity = 0
    return data
  }

  package mutating func clear() {
    count = 0
    guard capacity > Self.largestCopy * 2 else { return }
    free(base)
    base = nil
    capacity = 0
  }

  private mutating func grow(to size: Int) -> Bool {
    guard size > capacity else { return true }
    guard let larger = realloc(base, size) else { return false }
    base = larger
    capacity = size
    return true
  }
}
