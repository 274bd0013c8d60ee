import FoundationEssentials
import HTTPWire
import Randomness
import Testing

@Suite struct BodyChannelTests {
  private func read(_ channel: inout BodyChannel, _ room: Int) -> (bytes: [UInt8], reading: BodyReading, Bool)
  {
    var buffer = [UInt8](repeating: 0, count: room)
    let (reading, wakesWriter) = buffer.withUnsafeMutableBytes { channel.read(into: $0) }
    guard case .bytes(let count) = reading else { return ([], reading, wakesWriter) }
    return (Array(buffer[..<count]), reading, wakesWriter)
  }

  @Test("Bytes are read in the order of the writes") func order() {
    var channel = BodyChannel()
    _ = channel.write(Data([1, 2, 3]))
    _ = channel.write(Data([4, 5]))
    #expect(channel.count == 5)
    #expect(read(&channel, 4).bytes == [1, 2, 3, 4])
    #expect(read(&channel, 4).bytes == [5])
    #expect(channel.count == 0)
  }

  @Test("A reader that finds no bytes is woken once") func wake() {
    var channel = BodyChannel()
    guard case .wait = read(&channel, 4).reading else {
      Issue.record("an empty channel has to wait")
      return
    }
    let written1031 = channel.write(Data([1]))
    #expect(written1031 == .init(wakesReader: true, mayGoOn: true))
    let written1112 = channel.write(Data([2]))
    #expect(written1112 == .init(wakesReader: false, mayGoOn: true))
  }

  @Test("A waiting reader is woken for the end") func wakeForEnd() {
    var channel = BodyChannel()
    _ = read(&channel, 4)
    let isFirst = channel.finish()
    let isSecond = channel.finish()
    #expect(isFirst)
    #expect(!isSecond, "the first end counts")
    guard case .end = read(&channel, 4).reading else {
      Issue.record("the end has to come")
      return
    }
  }

  @Test("A failure follows the bytes before it") func failure() {
    var channel = BodyChannel()
    _ = channel.write(Data([9]))
    _ = channel.finish(TransportFailure(.cannotReadBody, "broken"))
    let written1698 = channel.write(Data([1]))
    #expect(written1698 == .init(wakesReader: false, mayGoOn: false))
    #expect(read(&channel, 4).bytes == [9])
    guard case .failure(let failure) = read(&channel, 4).reading else {
      Issue.record("the failure has to come")
      return
    }
    #expect(failure.message == "broken")
  }

  @Test("The writer stops at the high mark and continues at the low mark") func marks() {
    var channel = BodyChannel(highMark: 10, lowMark: 4)
    let below = channel.write(Data(count: 9))
    let above = channel.write(Data(count: 1))
    #expect(below.mayGoOn)
    #expect(!above.mayGoOn)
    #expect(read(&channel, 5).2 == false, "five are left")
    #expect(read(&channel, 1).2 == true, "four are left")
    #expect(read(&channel, 1).2 == false, "woken once")
  }

  @Test("Random operations lose no byte and respect the marks", arguments: [1, 2, 3, 4, 5] as [UInt64])
  func randomOperations(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var channel = BodyChannel(highMark: 100, lowMark: 30)
    var written: [UInt8] = []
    var seen: [UInt8] = []
    var mayWrite = true
    for _ in 0..<5000 {
      if mayWrite, Bool.random(using: &random) {
        let chunk = (0..<Int.random(in: 0...40, using: &random)).map { _ in
          UInt8.random(in: 0...255, using: &random)
        }
        written += chunk
        mayWrite = channel.write(Data(chunk)).mayGoOn
        #expect(mayWrite == (channel.count < 100))
      } else {
        let (bytes, _, wakes) = read(&channel, Int.random(in: 1...50, using: &random))
        seen += bytes
        if wakes { #expect(!mayWrite && channel.count <= 30) }
        if wakes { mayWrite = true }
        #expect(mayWrite || channel.count > 30, "a writer that waits would wait for ever")
      }
      #expect(channel.count == written.count - seen.count)
    }
    _ = channel.finish()
    while case .bytes = {
      let next = read(&channel, 64); seen += next.bytes; return next.reading
    }() {}
    #expect(seen == written)
  }
}
