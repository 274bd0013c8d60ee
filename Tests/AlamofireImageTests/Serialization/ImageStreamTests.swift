import Alamofire
@testable import AlamofireImage
import Foundation
import FoundationNetworking
import HTTPTestServer
import Randomness
import Testing

@Suite("Streams of images", .timeLimit(.minutes(1)))
struct ImageStreamTests {
  private let server: HTTPTestServer
  private let session = Session(configuration: .isolated)

  init() throws { server = try HTTPTestServer(routes: .none) }

  private func body(
    _ contents: [Data], boundary: String = "frame", head: String = "Content-Type: image/png\r\n\r\n"
  ) -> Data {
    var body = Data("ignored\r\n".utf8)
    for content in contents { body += Data("--\(boundary)\r\n\(head)".utf8) + content + Data("\r\n".utf8) }
    return body + Data("--\(boundary)--\r\n".utf8)
  }

  private func reply(_ body: Data, type: String) -> Reply { .image(body, type: type) }

  @Test("Each part is an image")
  func parts() async throws {
    let files = try (1...3).map { try Drawing(gradientOf: $0, 2).file(.png) }
    server.enqueue(reply(body(files), type: "multipart/x-mixed-replace; boundary=\"frame\""))
    var widths: [Int] = []
    for try await image in session.streamRequest(server.url("/")).validate().streamImages(imageScale: 2) {
      #expect(image.af.isInflated)
      #expect(image.scale == 2)
      widths.append(image.pixelWidth)
    }
    #expect(widths == [1, 2, 3])
  }

  @Test("An image arrives with its part, while the response goes on")
  func partOfMany() async throws {
    let gate = Gate()
    let part = try body([Drawing(gradientOf: 7, 2).file(.png)])
    var reply = Reply(body: .parts([.bytes(Array(part.dropLast(4) + Data("\r\n".utf8))), .gate(gate)]))
    reply.headers = [HTTPHeader(name: "Content-Type", value: "multipart/x-mixed-replace; boundary=frame")]
    server.enqueue(reply)
    defer { gate.open() }
    for try await image in session.streamRequest(server.url("/")).streamImages() {
      #expect(image.pixelWidth == 7)
      return
    }
    Issue.record("There is no image.")
  }

  @Test("The type is the one of the last response, also from the cache and after a challenge")
  func heads() async throws {
    let file = try Drawing(gradientOf: 7, 2).file(.png)
    let type = "multipart/x-mixed-replace; boundary=frame"
    var cached = reply(body([file, file]), type: type)
    cached.headers.append(HTTPHeader(name: "Cache-Control", value: "max-age=1000"))
    server.enqueue(cached, .redirect(to: "/next"))
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
    let session = Session(configuration: configuration)
    _ = try await session.request(server.url("/next")).serializingData().value
    for path in ["/", "/next"] {
      var count = 0
      for try await _ in session.streamRequest(server.url(path)).streamImages() { count += 1 }
      #expect(count == 2, "\(path)")
    }
    #expect(server.requestCount == 2)
  }

  @Test("The type is the one of the response to a login, or of the refusal")
  func challenge() async throws {
    let file = try Drawing(gradientOf: 7, 2).file(.png)
    let type = "multipart/x-mixed-replace; boundary=frame"
    var refused = reply(body([file]), type: type)
    refused.status = 401
    refused.headers.append(HTTPHeader(name: "WWW-Authenticate", value: "Basic realm=\"cameras\""))
    server.enqueue(refused, reply(body([file, file, file]), type: type))
    var count = 0
    let request = session.streamRequest(server.url("/camera")).authenticate(
      username: "ann", password: "secret")
    for try await _ in request.streamImages() { count += 1 }
    #expect(count == 3)
    server.enqueue(refused)
    count = 0
    for try await _ in session.streamRequest(server.url("/other")).streamImages() { count += 1 }
    #expect(count == 1)
  }

  @Test("A protocol of the user's has a type, too")
  func protocolClass() async throws {
    let configuration = URLSessionConfiguration.isolated
    configuration.protocolClasses = [CameraProtocol.self]
    let session = Session(configuration: configuration)
    var count = 0
    for try await image in session.streamRequest("http://camera.test/").streamImages() {
      #expect(image.pixelWidth == 7)
      count += 1
    }
    #expect(count == 2)
  }

  @Test("A response that is not multipart is one image")
  func single() async throws {
    server.enqueue(.image(try Drawing(gradientOf: 7, 2).file(.png)))
    var widths: [Int] = []
    for try await image in session.streamRequest(server.url("/")).streamImages(inflateResponseImage: false) {
      #expect(!image.af.isInflated)
      widths.append(image.pixelWidth)
    }
    #expect(widths == [7])
  }

  @Test("Images have the limits of their stream", arguments: [false, true])
  func limits(isMultipart: Bool) async throws {
    let file = try Drawing(gradientOf: 30, 20).file(.png)
    let limits = ImageLimits(pixels: 600)
    func enqueue() {
      server.enqueue(
        isMultipart ? reply(body([file]), type: "multipart/x-mixed-replace; boundary=frame") : .image(file))
    }
    enqueue()
    var count = 0
    for try await image in session.streamRequest(server.url("/")).streamImages(limits: limits) {
      #expect(image.limits == limits)
      #expect(image.scale == DataRequest.imageScale)
      #expect(image.af.isInflated)
      count += 1
    }
    #expect(count == 1)
    enqueue()
    await #expect(throws: ImageError.limitExceeded(.pixels, limit: 599, actual: 600)) {
      for try await _ in session.streamRequest(server.url("/")).streamImages(limits: ImageLimits(pixels: 599))
      {}
    }
  }

  @Test(
    "A response without a body has no image", arguments: ["image/png", "multipart/mixed; boundary=frame"])
  func empty(type: String) async throws {
    server.enqueue(reply(Data(), type: type))
    for try await image in session.streamRequest(server.url("/")).streamImages() {
      Issue.record("There is an image: \(image)")
    }
  }

  @Test("A part that cannot be decoded, or is too large, ends the loop with an error")
  func badParts() async throws {
    let type = "multipart/x-mixed-replace; boundary=frame"
    server.enqueue(reply(body([Data("hello".utf8)]), type: type))
    await #expect(throws: ImageError.unknownFormat) {
      for try await _ in session.streamRequest(server.url("/")).streamImages() {}
    }
    server.enqueue(reply(body([Data(count: 5_000)]), type: type))
    await #expect {
      for try await _ in session.streamRequest(server.url("/")).streamImages(
        limits: ImageLimits(bytes: 1_000))
      {}
    } throws: { error in
      if case ImageError.limitExceeded(.bytes, limit: 1_000, actual: _) = error { true } else { false }
    }
    server.enqueue(.status(404))
    await #expect(throws: AFError.self) {
      for try await _ in session.streamRequest(server.url("/")).validate().streamImages() {}
    }
  }

  @Test("Parts are the same however the body is cut into chunks", .seeded)
  func cuts() throws {
    let contents = [
      Data("one".utf8), Data("--frame?\r\n--fram".utf8), Data("a--frame\r\nb".utf8),
      Data([0, 13, 10, 45, 45, 13, 10, 7]),
    ]
    let whole = body(contents)
    var generator = Seed.generator()
    for _ in 0..<200 {
      var parts = try #require(
        MixedParts(contentType: "multipart/x-mixed-replace;boundary=frame", limit: 1_000))
      var found: [Data] = []
      var rest = whole
      while !rest.isEmpty {
        let count = Int.random(in: 1...min(20, rest.count), using: &generator)
        found += try parts.append(Data(rest.prefix(count)))
        rest = Data(rest.dropFirst(count))
      }
      #expect(found == contents)
      #expect(parts.isOver)
      #expect(try parts.append(whole).isEmpty)
    }
  }

  @Test("A part without an end is refused as soon as it is too large")
  func endless() throws {
    var parts = try #require(MixedParts(contentType: "multipart/mixed; boundary=x", limit: 100))
    #expect(try parts.append(Data("--x\r\n\r\n".utf8) + Data(count: 80)).isEmpty)
    #expect(throws: ImageError.self) { try parts.append(Data(count: 80)) }
  }

  @Test("A response that is not multipart is refused as soon as it is too large")
  func endlessBody() async throws {
    var reply = Reply.stallAfterBody(bytes: 5_000)
    reply.headers = [HTTPHeader(name: "Content-Type", value: "image/png")]
    server.enqueue(reply)
    await #expect {
      for try await _ in session.streamRequest(server.url("/")).streamImages(
        limits: ImageLimits(bytes: 1_000))
      {}
    } throws: { error in
      if case ImageError.limitExceeded(.bytes, limit: 1_000, actual: _) = error { true } else { false }
    }
  }

  @Test("The limit for bytes is that of all chunks together")
  func manyChunks() async throws {
    server.enqueue(.image(Data(count: 6_000_000)))
    await #expect {
      for try await _ in session.streamRequest(server.url("/")).streamImages(
        limits: ImageLimits(bytes: 2_000_000))
      {}
    } throws: { error in
      if case ImageError.limitExceeded(.bytes, limit: 2_000_000, actual: _) = error { true } else { false }
    }
  }

  @Test("Cameras that write hyphens into the boundary, or bare line feeds, are understood")
  func cameras() throws {
    var parts = try #require(MixedParts(contentType: "Multipart/mixed; x=y; Boundary=--cam", limit: 1_000))
    #expect(
      try parts.append(Data("--cam\nContent-Type: image/jpeg\n\nabc\n--cam\n\n\n--cam--".utf8)) == [
        Data("abc".utf8)
      ])
  }

  @Test(
    "Other types have no parts",
    arguments: [
      "", "image/png", "multipart/mixed", "multipart/mixed; boundary=", "multipart/mixed; boundary=\"\"",
      "multipart/mixed; boundary=\(String(repeating: "x", count: 71))",
    ])
  func otherTypes(type: String) { #expect(MixedParts(contentType: type, limit: 1) == nil) }
}

/// A protocol that sends two images.
private final class CameraProtocol: URLProtocol {
  override class func canInit(with request: URLRequest) -> Bool { request.url?.host == "camera.test" }
  override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

  override func startLoading() {
    guard let url = request.url, let file = try? Drawing(gradientOf: 7, 2).file(.png),
      let response = HTTPURLResponse(
        url: url, statusCode: 200, httpVersion: "HTTP/1.1",
        headerFields: ["Content-Type": "multipart/x-mixed-replace; boundary=frame"])
    else { return }
    client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
    for _ in 0..<2 {
      let head = Data("--frame\r\nContent-Type: image/png\r\n\r\n".utf8)
      client?.urlProtocol(self, didLoad: head + file + Data("\r\n".utf8))
    }
    client?.urlProtocol(self, didLoad: Data("--frame--\r\n".utf8))
    client?.urlProtocolDidFinishLoading(self)
  }

  override func stopLoading() {}
}
