import Alamofire
@testable import AlamofireImage
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite("Serializers of images, and their options", .timeLimit(.minutes(1)))
struct ImageSerializerTests {
  private let url: URL
  private let file: Data

  init() throws {
    url = try #require(URL(string: "http://example.com/a"))
    file = try Drawing(gradientOf: 9, 7).file(.png)
  }

  private func head(_ status: Int = 200, type: String? = "image/png") throws -> HTTPURLResponse {
    try #require(
      HTTPURLResponse(
        url: url, statusCode: status, httpVersion: "HTTP/1.1",
        headerFields: type.map { ["Content-Type": $0] } ?? [:]))
  }

  private func serialize(
    _ data: Data?, by serializer: ImageResponseSerializer = ImageResponseSerializer(), status: Int = 200,
    type: String? = "image/png", method: HTTPMethod = .get, error: (any Error)? = nil
  ) throws -> Image {
    var request = URLRequest(url: url)
    request.method = method
    return try serializer.serialize(
      request: request, response: head(status, type: type), data: data, error: error)
  }

  @Test("A serializer keeps its options, and has the defaults")
  func options() {
    let usual = ImageResponseSerializer()
    #expect((usual.imageScale, usual.inflateResponseImage, usual.limits) == (1, true, .default))
    #expect((usual.emptyResponseCodes, usual.emptyRequestMethods) == ([204, 205], [.head]))
    let limits = ImageLimits(pixels: 7)
    let other = ImageResponseSerializer(
      imageScale: 3, inflateResponseImage: false, limits: limits, emptyResponseCodes: [201],
      emptyRequestMethods: [.post])
    #expect((other.imageScale, other.inflateResponseImage, other.limits) == (3, false, limits))
    #expect((other.emptyResponseCodes, other.emptyRequestMethods) == ([201], [.post]))
    #expect(ImageResponseSerializer(inflateResponseImage: true).inflateResponseImage)
  }

  @Test("The image has the scale and the limits, and is decoded or not", arguments: [false, true])
  func images(isInflated: Bool) throws {
    let limits = ImageLimits(pixels: 63)
    let image = try serialize(
      file, by: ImageResponseSerializer(imageScale: 2, inflateResponseImage: isInflated, limits: limits))
    #expect((image.scale, image.limits, image.af.isInflated) == (2, limits, isInflated))
    #expect(try image == Drawing(gradientOf: 9, 7).image(scale: 2))
  }

  /// Returns the error of an image in what a function throws.
  private func cause(_ body: () throws -> Image) -> ImageError? {
    do {
      _ = try body()
    } catch AFIError.imageSerializationFailed(let cause) {
      return cause
    } catch {
      Issue.record("\(error)")
    }
    return nil
  }

  @Test("An image that is refused or damaged is a failed serialization, with its cause")
  func refused() throws {
    let limits = ImageLimits(pixels: 62)
    #expect(
      cause { try serialize(file, by: ImageResponseSerializer(limits: limits)) }
        == .limitExceeded(.pixels, limit: 62, actual: 63))
    #expect(cause { try serialize(Data("hello".utf8)) } == .unknownFormat)
    let half = try Drawing(gradientOf: 200, 200).file(.png).prefix(900)
    guard case .damaged? = cause({ try serialize(half) }) else {
      Issue.record("It is not damaged.")
      return
    }
    #expect(try serialize(half, by: ImageResponseSerializer(inflateResponseImage: false)).pixelWidth == 200)
  }

  @Test("An empty body is a clear pixel where the status or the method allows it, and else an error")
  func empty() throws {
    let own = ImageResponseSerializer(imageScale: 3, emptyResponseCodes: [201], emptyRequestMethods: [.post])
    let cases: [(ImageResponseSerializer, Int, HTTPMethod, Bool)] = [
      (ImageResponseSerializer(), 204, .get, true), (ImageResponseSerializer(), 205, .get, true),
      (ImageResponseSerializer(), 200, .head, true), (ImageResponseSerializer(), 200, .get, false),
      (ImageResponseSerializer(), 201, .get, false), (ImageResponseSerializer(), 200, .post, false),
      (own, 201, .get, true), (own, 200, .post, true), (own, 204, .get, false), (own, 200, .head, false),
    ]
    for (serializer, status, method, isAllowed) in cases {
      for data in [nil, Data()] {
        // The content type of an empty body does not matter.
        for type in ["image/png", "text/html", nil] {
          guard isAllowed else {
            #expect {
              try serialize(data, by: serializer, status: status, type: type, method: method)
            } throws: {
              if case .responseSerializationFailed(.inputDataNilOrZeroLength)? = $0 as? AFError {
                true
              } else {
                false
              }
            }
            continue
          }
          let image = try serialize(data, by: serializer, status: status, type: type, method: method)
          #expect(image.scale == serializer.imageScale)
          #expect(try image.pixels(as: .rgba) == Data([0, 0, 0, 0]), "\(status), \(method)")
          #expect((image.pixelWidth, image.pixelHeight) == (1, 1))
        }
      }
    }
  }

  @Test("A failure is passed on, whatever else there is")
  func failure() {
    for data in [nil, Data(), file] {
      #expect(throws: URLError(.timedOut)) { try serialize(data, error: URLError(.timedOut)) }
      #expect(throws: URLError(.timedOut)) {
        try serialize(data, status: 204, type: nil, error: URLError(.timedOut))
      }
    }
  }

  @Test("These content types are accepted, in any case, and no others")
  func types() throws {
    let types = [
      "application/octet-stream", "image/avif", "image/bmp", "image/gif", "image/heic", "image/heif",
      "image/ico",
      "image/jp2", "image/jpeg", "image/jpg", "image/jxl", "image/png", "image/tiff", "image/webp",
      "image/x-bmp",
      "image/x-icon", "image/x-ms-bmp", "image/x-win-bitmap", "image/x-xbitmap",
    ]
    let accepted = ImageResponseSerializer.acceptableImageContentTypes
    // Other tests add types of their own.
    #expect(accepted.filter { !$0.hasPrefix("image/x-own-") } == Set(types))
    for type in types {
      for text in [type, type.uppercased(), "\(type); charset=utf-8"] {
        #expect(try serialize(file, type: text).pixelWidth == 9, "\(text)")
      }
    }
    for type in ["text/html", "image/svg+xml", "image", "image/", "application/json", "image/pngs"] {
      #expect {
        try serialize(file, type: type)
      } throws: { error in
        guard
          case .responseValidationFailed(
            .unacceptableContentType(let acceptable, let received))? = error as? AFError
        else { return false }
        return received == type && acceptable == acceptable.sorted() && Set(acceptable).isSuperset(of: types)
      }
    }
    let withoutHead: [() throws -> Image] = [
      { try self.serialize(self.file, type: nil) },
      {
        try ImageResponseSerializer().serialize(request: nil, response: nil, data: self.file, error: nil)
      },
      {
        try ImageResponseSerializer().serialize(
          request: URLRequest(url: self.url), response: nil, data: self.file, error: nil)
      },
    ]
    for make in withoutHead {
      #expect {
        try make()
      } throws: { error in
        guard case .responseValidationFailed(.missingContentType(let acceptable))? = error as? AFError else {
          return false
        }
        return acceptable == acceptable.sorted() && Set(acceptable).isSuperset(of: types)
      }
    }
    #expect(throws: AFError.self) { try serialize(Data("hello".utf8), type: "text/html") }
  }

  @Test("A task and a handler have all options of the serializer")
  func requests() async throws {
    let server = try HTTPTestServer(routes: .none)
    let session = Session(configuration: .isolated)
    let limits = ImageLimits(pixels: 63)
    for isInflated in [false, true] {
      server.enqueue(.image(file), .image(file))
      let task = session.request(server.url("/")).serializingImage(
        imageScale: 2, inflateResponseImage: isInflated, limits: limits)
      let (awaited, handled) = await (
        try task.value,
        withCheckedContinuation { continuation in
          session.request(server.url("/")).responseImage(
            imageScale: 3, inflateResponseImage: isInflated, limits: limits, queue: .global()
          ) { continuation.resume(returning: $0) }
        }
      )
      #expect((awaited.scale, awaited.limits, awaited.af.isInflated) == (2, limits, isInflated))
      let image = try handled.result.get()
      #expect((image.scale, image.limits, image.af.isInflated) == (3, limits, isInflated))
    }
    server.enqueue(.image(file), .image(file))
    let usual = try await session.request(server.url("/")).serializingImage().value
    #expect((usual.scale, usual.limits, usual.af.isInflated) == (1, .default, true))
    let response = await withCheckedContinuation { continuation in
      session.request(server.url("/")).responseImage(queue: .global()) { continuation.resume(returning: $0) }
    }
    let image = try response.result.get()
    #expect((image.scale, image.limits, image.af.isInflated) == (1, .default, true))
    for (code, method, isAllowed) in [(201, HTTPMethod.get, true), (200, .post, true), (204, .get, false)] {
      server.enqueue(.status(code))
      let result = await session.request(server.url("/"), method: method).serializingImage(
        emptyResponseCodes: [201], emptyRequestMethods: [.post]
      ).result
      #expect(((try? result.get()) != nil) == isAllowed, "\(code), \(method)")
    }
  }

  @Test("A stream keeps its options, and has the defaults")
  func streams() {
    let session = Session(configuration: .isolated)
    let request = session.streamRequest(url)
    let usual = request.streamImages()
    #expect((usual.scale, usual.inflates, usual.limits) == (1, true, .default))
    let limits = ImageLimits(pixels: 7)
    let other = request.streamImages(imageScale: 3, inflateResponseImage: false, limits: limits)
    #expect((other.scale, other.inflates, other.limits) == (3, false, limits))
    #expect(other.request === request)
  }
}
