import Foundation
import HTTPWire
import Synchronization
import Testing

@testable import Alamofire

/// The timer of a channel without a request, so that a test can set it as the completion of a write does.
@Suite("WebSocket channels", .timeLimit(.minutes(5))) struct WebSocketChannelTests {
  /// Ignores the events of a channel and of its stream.
  private final class ChannelOwner: WebSocketChannelObserver, ByteStreamWatcher {
    nonisolated(nonsending) func validate(_ head: ResponseHead) async throws(TransportFailure) {}
    func channelOpened(_ channel: WebSocketChannel, subprotocol: String?) {}
    func messagesReceived(_ messages: WebSocketMessages) {}
    func channelClosed(_ code: WebSocketCloseCode, reason: String) {}
    func channelEnded() {}

    func evaluate(_ chain: PresentedChain) async -> TransportFailure? { nil }
    func identity() async -> Result<ClientIdentity?, TransportFailure> { .success(nil) }
    func streamOpened() {}
    func streamEnded(_ failure: TransportFailure?) {}
  }

  private static let pingByte: UInt8 = 0x89

  /// Opens a channel whose first automatic ping is due after the test.
  private func opened() throws -> (WebSocketChannel, FakeByteStream) {
    let url = "http://a.test/"
    let origin = try #require(Origin(url: url))
    let request = WireRequest(url: url, origin: origin, profile: ConnectionProfile())
    let owner = ChannelOwner()
    let stream = FakeByteStream(request, isSecure: false, watcher: owner)
    var options = WebSocketChannelOptions()
    options.pingInterval = .seconds(3000)
    let channel = WebSocketChannel(
      stream, host: "a.test", options, deflate: nil, input: Data(), observer: owner)
    channel.start(subprotocol: nil) { _ in }
    return (channel, stream)
  }

  @Test("The timer for a pong ends the connection only if an automatic ping has no answer")
  func answeredPing()
    async throws
  {
    let (channel, stream) = try opened()
    // The completion of a write does this after another thread has processed the pong.
    channel.setTimer(.pong, after: .milliseconds(1))
    #expect(await eventually { stream.writes.count + stream.ends.count > 0 })
    #expect(stream.ends.count == 0 && stream.writes.values.first?.first == Self.pingByte)
    // The completion of the write of that ping sets the timer, too.
    await stream.settle()
    channel.setTimer(.pong, after: .milliseconds(1))
    #expect(await stream.ends.wait(for: 1) == [.cancelled])
    #expect(stream.writes.count == 1)
  }

  @Test("The timer for a pong ends a connection on which no ping can be written") func failedWrite()
    async throws
  {
    let (channel, stream) = try opened()
    stream.failWrites()
    let failures = Recorder<TransportFailure.FailureKind?>()
    let refusal = channel.send(.text("a")) { failure in failures.add(failure?.kind) }
    #expect(refusal == nil)
    #expect(await failures.wait(for: 1) == [.connectionLost])
    channel.setTimer(.pong, after: .milliseconds(1))
    #expect(await stream.ends.wait(for: 1) == [.cancelled])
  }

  /// The progress of the thread that sends messages.
  private final class Sending: Sendable {
    let hasBegun = Atomic(false)
    let isOver = Atomic(false)
  }

  @Test("Messages after a closure that waits for a channel are not sent while the channel opens")
  func messagesAfterClosure() async throws {
    // The moment between the opening and the closure is short, so that one attempt would miss it.
    for _ in 0..<300 {
      let (channel, stream) = try opened()
      let flow = WebSocketFlow(WebSocketChannelOptions(), subprotocols: [])
      flow.close(.goingAway, reason: "")
      let sending = Sending()
      Thread.detachNewThread {
        repeat {
          _ = flow.send(.text("late"), isLimited: false, nil)
          sending.hasBegun.store(true, ordering: .releasing)
        } while !sending.isOver.load(ordering: .acquiring)
      }
      while !sending.hasBegun.load(ordering: .acquiring) { await Task.yield() }
      flow.channelOpened(channel, subprotocol: nil)
      sending.isOver.store(true, ordering: .releasing)
      let first = try await stream.writes.value(0).first
      stream.cancel()
      try #require(first == 0x88, "a message is sent before the Close frame")
    }
  }
}
