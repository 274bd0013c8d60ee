import Alamofire
@testable import AlamofireImage
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite("Images of responses")
struct ImageSerializationTests {
  private let server: HTTPTestServer
  private let session = Session(configuration: .isolated)

  init() throws { server = try HTTPTestServer(routes: .none) }

  private func error(_ reply: Reply, inflate: Bool = true) async -> AFError? {
    server.enqueue(reply)
    let task = session.request(server.url("/")).serializingImage(inflateResponseImage: inflate)
    return await task.result.failure
  }

  @Test("A response becomes an image that is decoded")
  func image() async throws {
    let drawing = Drawing(gradientOf: 30, 20)
    server.enqueue(.image(try drawing.file(.png)), .image(try drawing.file(.png)))
    let image = try await session.request(server.url("/")).serializingImage(imageScale: 2).value
    #expect(image.af.isInflated)
    #expect(image == (try drawing.image(scale: 2)))
    let lazy = try await session.request(server.url("/")).serializingImage(inflateResponseImage: false).value
    #expect(!lazy.af.isInflated)
    #expect(lazy == (try drawing.image()))
  }

  @Test("A handler gets the image on its queue")
  func handler() async throws {
    server.enqueue(.image(try Drawing(gradientOf: 3, 3).file(.png)))
    let response = await withCheckedContinuation { continuation in
      session.request(server.url("/")).responseImage(queue: .global()) { continuation.resume(returning: $0) }
    }
    #expect(response.value?.pixelWidth == 3)
    #expect(response.response?.statusCode == 200)
    let key = DispatchSpecificKey<Bool>()
    let queue = DispatchQueue(label: "org.alamofire.tests.handler")
    queue.setSpecific(key: key, value: true)
    server.enqueue(.image(try Drawing(gradientOf: 3, 3).file(.png)))
    let isOnQueue = await withCheckedContinuation { continuation in
      session.request(server.url("/")).responseImage(queue: queue) { _ in
        continuation.resume(returning: DispatchQueue.getSpecific(key: key) == true)
      }
    }
    #expect(isOnQueue)
  }

  @Test(
    "A request goes on when its task is cancelled, unless it is cancelled with it", arguments: [false, true])
  func automaticCancellation(isCancelled: Bool) async throws {
    let gate = Gate()
    server.enqueue(.image(try Drawing(gradientOf: 3, 3).file(.png)).held(by: gate))
    let request = session.request(server.url("/"))
    let image = request.serializingImage(automaticallyCancelling: isCancelled)
    let (began, continuation) = AsyncStream.makeStream(of: Void.self)
    let task = Task {
      continuation.yield()
      return await image.result
    }
    await gate.waitUntilReached()
    for await _ in began { break }
    task.cancel()
    // A request that is cancelled ends without its response.
    if !isCancelled { gate.open() }
    #expect((await task.value.failure == nil) == !isCancelled)
    gate.open()
    #expect(request.isCancelled == isCancelled)
  }

  @Test("The failure of a request is passed on, also if it has a body")
  func failureWithBody() throws {
    let file = try Drawing(gradientOf: 3, 3).file(.png)
    let request = URLRequest(url: URL(fileURLWithPath: "/picture.png"))
    for data in [file, nil] {
      #expect(throws: URLError(.networkConnectionLost)) {
        try ImageResponseSerializer().serialize(
          request: request, response: nil, data: data, error: URLError(.networkConnectionLost))
      }
    }
  }

  @Test("A body that cannot be decoded is an error that says why")
  func noImage() async throws {
    let error = try #require(await error(.image(Data("hello".utf8))))
    guard case .responseSerializationFailed(reason: .customSerializationFailed(error: let cause)) = error
    else {
      Issue.record("\(error)")
      return
    }
    let afiError = try #require(cause as? AFIError)
    #expect(afiError.isImageSerializationFailedError)
    #expect(!afiError.isRequestCancelledError && !afiError.isAlamofireError)
    #expect(
      "\(afiError)"
        == "The response cannot be decoded as an image. The data is not an image of a known format.")
  }

  @Test("A truncated image is an error when it is decoded, and not before")
  func truncated() async throws {
    let file = try Drawing(gradientOf: 300, 200).file(.png)
    let half = Reply.image(file.prefix(file.count / 2))
    #expect(await error(half) != nil)
    #expect(await error(half, inflate: false) == nil)
  }

  @Test("The content type must be accepted")
  func contentTypes() async throws {
    let file = try Drawing(gradientOf: 3, 3).file(.png)
    let error = try #require(await error(.image(file, type: "text/html")))
    #expect(error.isResponseValidationError || error.underlyingError is AFError, "\(error)")
    #expect("\(error)".contains("text/html"), "\(error)")
    #expect(await self.error(.image(file, type: "application/octet-stream")) == nil)
    #expect(await self.error(.image(file, type: "IMAGE/PNG; x=1")) == nil)
    let own = "image/x-own-\(UUID().uuidString.lowercased())"
    #expect(await self.error(.image(file, type: own)) != nil)
    ImageResponseSerializer.addAcceptableImageContentTypes([own])
    #expect(await self.error(.image(file, type: own)) == nil)
    #expect(await self.error(.image(file)) == nil, "the other types are still accepted")
    var untyped = Reply.data(Array(file))
    untyped.headers = []
    #expect(await self.error(untyped) != nil)
  }

  @Test("An empty body is an error unless the status allows it")
  func empty() async throws {
    #expect(await error(.image(Data())) != nil)
    server.enqueue(.status(204))
    let image = try await session.request(server.url("/")).serializingImage().value
    #expect(image.pixelWidth == 1)
    #expect(try image.pixel(0, 0) == [0, 0, 0, 0])
    server.enqueue(.image(Data()), .image(Data()))
    let allowed = session.request(server.url("/")).serializingImage(imageScale: 2, emptyResponseCodes: [200])
    #expect(try await allowed.value.scale == 2)
    let byMethod = session.request(server.url("/")).serializingImage(emptyRequestMethods: [.get])
    #expect(try await byMethod.value.pixelWidth == 1)
  }

  @Test("A cancellation is one of the image, whoever cancelled")
  func cancellation() {
    #expect(AFIError(AFError.explicitlyCancelled).isRequestCancelledError)
    #expect(AFIError(AFError.sessionDeinitialized).isAlamofireError)
    let cause = AFError.responseSerializationFailed(
      reason: .customSerializationFailed(error: AFIError.imageSerializationFailed(.unknownFormat)))
    #expect(AFIError(cause).isImageSerializationFailedError)
  }

  @Test("The limits hold for responses")
  func limits() async throws {
    server.enqueue(.image(try Drawing(gradientOf: 30, 30).file(.png)))
    let result = await session.request(server.url("/")).serializingImage(limits: ImageLimits(pixels: 100))
      .result
    #expect("\(try #require(result.failure))".contains("900 pixels, and the limit is 100"))
    server.enqueue(.image(try Drawing(gradientOf: 30, 30).file(.png)))
    let response = await withCheckedContinuation { continuation in
      session.request(server.url("/")).responseImage(limits: ImageLimits(pixels: 200), queue: .global()) {
        continuation.resume(returning: $0)
      }
    }
    #expect("\(try #require(response.error))".contains("900 pixels, and the limit is 200"))
  }

  @Test("A file URL needs no content type")
  func fileURL() throws {
    let file = try Drawing(gradientOf: 3, 3).file(.png)
    let request = URLRequest(url: URL(fileURLWithPath: "/picture.png"))
    let image = try ImageResponseSerializer().serialize(
      request: request, response: nil, data: file, error: nil)
    #expect(image.pixelWidth == 3)
    #expect(throws: AFError.self) {
      try ImageResponseSerializer().serialize(request: nil, response: nil, data: file, error: nil)
    }
  }

  @Test("The scale of the process has its default for values that are not positive")
  func scale() {
    #expect(DataRequest.imageScale == 1)
    DataRequest.imageScale = -1
    #expect(DataRequest.imageScale == 1)
    #expect(ImageResponseSerializer.deviceScreenScale == 1)
  }
}

extension Result {
  fileprivate var failure: Failure? { if case .failure(let error) = self { error } else { nil } }
}
