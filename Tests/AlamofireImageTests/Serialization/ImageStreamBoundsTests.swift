import Alamofire
@testable import AlamofireImage
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite("Bounds and order of streams of images", .timeLimit(.minutes(1)))
struct ImageStreamBoundsTests {
  private let server: HTTPTestServer
  private let session = Session(configuration: .isolated)
  private let multipart = "multipart/x-mixed-replace; boundary=frame"

  init() throws { server = try HTTPTestServer(routes: .none) }

  private func part(_ content: Data, head: String = "") -> Data {
    Data("--frame\r\n\(head)\r\n".utf8) + content + Data("\r\n".utf8)
  }

  /// Returns the widths of the images of a response that arrives in pieces, and the error at the end.
  private func widths(
    _ pieces: [Data], type: String?, limits: ImageLimits = .default, inflates: Bool = true
  ) async -> (widths: [Int], error: (any Error)?) {
    var reply = Reply(body: .parts(pieces.map { .bytes(Array($0)) }))
    reply.headers = type.map { [HTTPHeader(name: "Content-Type", value: $0)] } ?? []
    server.enqueue(reply)
    var widths: [Int] = []
    do {
      for try await image in session.streamRequest(server.url("/")).streamImages(
        inflateResponseImage: inflates, limits: limits)
      {
        widths.append(image.pixelWidth)
      }
      return (widths, nil)
    } catch {
      return (widths, error)
    }
  }

  @Test("All pieces of a body are one image, whatever its type says, unless it is multipart")
  func pieces() async throws {
    let file = try Drawing(gradientOf: 7, 3).file(.png)
    let pieces = stride(from: 0, to: file.count, by: 20).map { file.dropFirst($0).prefix(20) }
    for type in ["image/png", "text/html", "multipart/mixed", nil] {
      let (widths, error) = await widths(pieces, type: type)
      #expect(widths == [7], "\(type ?? "no type")")
      #expect(error == nil)
    }
  }

  @Test("Images come in their order, also those of one piece and those behind an empty part")
  func order() async throws {
    let parts = try (1...4).map { part(try Drawing(gradientOf: $0, 2).file(.png), head: "X: \($0)\r\n") }
    let end = Data("--frame--\r\n".utf8)
    let bodies: [[Data]] = [
      [parts[0] + parts[1] + parts[2] + parts[3] + end], parts + [end],
      [parts[0] + part(Data()) + parts[1], parts[2] + parts[3] + end],
      [Data("preamble\r\n".utf8) + parts[0], parts[1], parts[2], parts[3] + end + parts[0] + end],
      [parts[0] + parts[1], parts[2] + parts[3] + Data("--frame\r\n".utf8)],
    ]
    for (index, body) in bodies.enumerated() {
      let (widths, error) = await widths(body, type: multipart)
      #expect(widths == [1, 2, 3, 4], "body \(index)")
      #expect(error == nil, "body \(index)")
    }
  }

  @Test("A body and a part may have as many bytes as the limit, and no more")
  func bytes() async throws {
    let file = try Drawing(gradientOf: 7, 3).file(.png)
    for (body, type, count) in [
      ([file], "image/png", file.count), ([file.prefix(30), file.dropFirst(30)], "image/png", file.count),
      // A part counts with its empty head and the line breaks around it.
      ([part(file) + Data("--frame--".utf8)], multipart, file.count + 6),
    ] {
      let exact = await widths(body, type: type, limits: ImageLimits(bytes: count))
      #expect(exact.widths == [7], "\(type)")
      #expect(exact.error == nil, "\(type)")
      let less = await widths(body, type: type, limits: ImageLimits(bytes: count - 1))
      #expect(less.widths == [])
      #expect(
        less.error as? ImageError == .limitExceeded(.bytes, limit: count - 1, actual: count), "\(type)")
    }
  }

  @Test("A truncated image ends the loop when it is decoded, and what came before it is delivered")
  func truncated() async throws {
    let file = try Drawing(gradientOf: 200, 200).file(.png)
    let body = [
      try part(Drawing(gradientOf: 3, 3).file(.png)), part(file.prefix(900)) + Data("--frame--".utf8),
    ]
    let decoded = await widths(body, type: multipart)
    #expect(decoded.widths == [3])
    guard case .damaged? = decoded.error as? ImageError else {
      Issue.record("\(String(describing: decoded.error))")
      return
    }
    let lazy = await widths(body, type: multipart, inflates: false)
    #expect(lazy.widths == [3, 200])
    #expect(lazy.error == nil)
  }

  @Test("The scheme of a URL may have capital letters")
  func scheme() async throws {
    let file = try Drawing(gradientOf: 7, 3).file(.png)
    let gate = Gate()
    var reply = Reply(body: .parts([.bytes(Array(part(file) + part(file))), .gate(gate)]))
    reply.headers = [HTTPHeader(name: "Content-Type", value: multipart)]
    server.enqueue(reply)
    defer { gate.open() }
    let url = "HTTP" + server.url("/").dropFirst(4)
    for try await image in session.streamRequest(url).streamImages() {
      #expect(image.pixelWidth == 7)
      return
    }
    Issue.record("There is no image.")
  }

  @Test("After an error, there is no image, although good parts follow")
  func endAfterError() async throws {
    let good = part(try Drawing(gradientOf: 3, 3).file(.png))
    let body = good + part(Data("no image".utf8)) + good + Data("--frame--".utf8)
    var reply = Reply(body: .parts([.bytes(Array(body))]))
    reply.headers = [HTTPHeader(name: "Content-Type", value: multipart)]
    server.enqueue(reply)
    var iterator = session.streamRequest(server.url("/")).streamImages().makeAsyncIterator()
    var (widths, errors) = ([Int?](), [ImageError?]())
    for _ in 0..<4 {
      do { widths.append(try await iterator.next()?.pixelWidth) } catch {
        errors.append(error as? ImageError)
      }
    }
    #expect(widths == [3, nil, nil])
    #expect(errors == [.unknownFormat])
  }

  @Test("After the end, there is no image, however often one asks")
  func end() async throws {
    server.enqueue(.image(try Drawing(gradientOf: 7, 3).file(.png)))
    var iterator = session.streamRequest(server.url("/")).streamImages().makeAsyncIterator()
    #expect(try await iterator.next()?.pixelWidth == 7)
    for _ in 0..<3 { #expect(try await iterator.next() == nil) }
  }
}
