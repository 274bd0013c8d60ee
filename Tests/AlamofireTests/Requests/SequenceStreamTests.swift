import Foundation
import Testing

@testable import Alamofire

@Suite("The stream of an asynchronous sequence", .timeLimit(.minutes(1))) struct SequenceStreamTests {
  /// Closes the stream of a sequence many times, and then reads it to its end. A read blocks its thread.
  private static func bytes(of sequence: AsyncStream<Data>) -> Data {
    let stream = SequenceStream(sequence)
    for _ in 0..<10_000 { stream.close() }
    stream.open()
    var buffer = [UInt8](repeating: 0, count: 65_536)
    var bytes = Data()
    while true {
      let count = stream.read(&buffer, maxLength: buffer.count)
      guard count > 0 else { return bytes }
      bytes += buffer[..<count]
    }
  }

  @Test("Closing a stream that is not open loses no bytes of a later iteration") func closedBefore() async {
    let elements = [Data(repeating: 1, count: 100_000), Data(repeating: 2, count: 100_000)]
    let (sequence, continuation) = AsyncStream<Data>.makeStream()
    for element in elements { continuation.yield(element) }
    continuation.finish()
    let bytes = await withCheckedContinuation { waiter in
      Thread { waiter.resume(returning: Self.bytes(of: sequence)) }.start()
    }
    #expect(bytes == elements[0] + elements[1])
  }
}
