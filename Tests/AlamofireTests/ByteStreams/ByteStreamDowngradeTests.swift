import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@testable import Alamofire

/// Operations that were requested after `startTLS` are never performed in the clear.
@Suite("Streams of bytes whose TLS does not begin", .timeLimit(.minutes(5))) struct ByteStreamDowngradeTests {
  private let session = Session.forStreams()
  private let queue = DispatchQueue(label: "handlers")

  private static func error<Value>(of result: Result<Value, AFError>) -> AFError? {
    if case .failure(let error) = result { error } else { nil }
  }

  @Test("A write behind a startTLS that is cancelled is not sent") func cancelledTLS() async throws {
    let received = Recorder<[UInt8]>()
    let server = try StreamTestServer { connection in
      try connection.write("220 ready\r\n")
      received.add(try connection.readToEnd())
    }
    let stream = session.byteStream(host: "localhost", port: server.port)
    _ = try await stream.read(atLeast: 11)
    stream.suspend()
    let (secured, written) = (Recorder<AFError?>(), Recorder<AFError?>())
    let asked = stream.core.secure { secured.add(Self.error(of: $0)) }
    let number = try #require(asked)
    stream.write(Data("secret".utf8), queue: queue) { written.add(Self.error(of: $0)) }
    // As the cancellation of the task that has called `startTLS()`.
    stream.core.withdraw(number)
    stream.resume()
    #expect(try await secured.value(0)?.isExplicitlyCancelledError == true)
    #expect(try await written.value(0)?.transferCode == .networkConnectionLost)
    stream.cancel()
    #expect(await received.wait(for: 1) == [[]], "the secret must not be sent in the clear")
    #expect(await stream.ended()?.transferCode == .networkConnectionLost)
  }

  @Test("A write behind a startTLS of a task that is already cancelled is not sent") func cancelledTask()
    async throws
  {
    let received = Recorder<[UInt8]>()
    let server = try StreamTestServer { connection in
      try connection.write("220 ready\r\n")
      received.add(try connection.readToEnd())
    }
    let stream = session.byteStream(host: "localhost", port: server.port)
    _ = try await stream.read(atLeast: 11)
    let error = await Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await failure { try await stream.startTLS() }
    }.value
    #expect(error?.isExplicitlyCancelledError == true)
    let written = Recorder<AFError?>()
    stream.write(Data("secret".utf8), queue: queue) { written.add(Self.error(of: $0)) }
    #expect(try await written.value(0)?.isExplicitlyCancelledError == true)
    stream.cancel()
    #expect(await received.wait(for: 1) == [[]], "the secret must not be sent in the clear")
    #expect(await stream.ended()?.isExplicitlyCancelledError == true)
  }

  @Test("A write behind a startTLS that comes after the end of the peer is not sent") func endOfPeer()
    async throws
  {
    let received = Recorder<[UInt8]>()
    let server = try StreamTestServer { connection in
      try connection.write("220")
      connection.closeWriting()
      received.add(try connection.readToEnd())
    }
    let stream = session.byteStream(host: "localhost", port: server.port)
    let task = stream.task
    let greeting = Recorder<Data?>()
    task.readData(ofMinLength: 4, maxLength: 512, timeout: 0) { data, _, _ in greeting.add(data) }
    #expect(await greeting.wait(for: 1) == [Data("220".utf8)])
    task.startSecureConnection()
    let written = Recorder<URLError.Code?>()
    task.write(Data("secret".utf8), timeout: 0) { written.add(($0 as? URLError)?.code) }
    #expect(await written.wait(for: 1) == [.secureConnectionFailed])
    stream.cancel()
    #expect(await received.wait(for: 1) == [[]], "the secret must not be sent in the clear")
    #expect(await stream.ended()?.transferCode == .secureConnectionFailed)
  }

  @Test("startTLS ends a stream whose reading side is closed", arguments: [true, false])
  func closedReading(isConnected: Bool) async throws {
    let server = try StreamTestServer()
    let stream = session.byteStream(host: "localhost", port: server.port)
    if isConnected {
      try await stream.write(Data("x".utf8))
      _ = try await stream.read()
    }
    stream.closeRead()
    #expect(await failure { try await stream.startTLS() }?.transferCode == .secureConnectionFailed)
    #expect(
      await failure { try await stream.write(Data("secret".utf8)) }?.transferCode == .secureConnectionFailed)
    stream.cancel()
    #expect(await stream.ended()?.transferCode == .secureConnectionFailed)
  }
}
