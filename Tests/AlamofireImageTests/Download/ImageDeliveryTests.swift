import Alamofire
@testable import AlamofireImage
import Foundation
import FoundationNetworking
import Testing

@Suite("Images of one response for all who wait", .timeLimit(.minutes(1)))
struct ImageDeliveryTests {
  private let request: URLRequest
  private let adapted: URLRequest
  private let cache = AutoPurgingImageCache()
  private let file: Data

  init() throws {
    request = URLRequest(url: try #require(URL(string: "http://example.com/a.png")))
    adapted = URLRequest(url: try #require(URL(string: "http://example.com/b.png")))
    file = try Drawing(gradientOf: 9, 7).file(.png)
  }

  private func response(_ data: Data?, type: String = "image/png", status: Int = 200, error: AFError? = nil)
    throws
    -> AFDataResponse<Data?>
  {
    let head = HTTPURLResponse(
      url: try #require(adapted.url), statusCode: status, httpVersion: "HTTP/1.1",
      headerFields: ["Content-Type": type])
    return AFDataResponse<Data?>(
      request: adapted, response: head, data: data, metrics: nil, serializationDuration: 0,
      result: error.map { .failure($0) } ?? .success(data))
  }

  private func waiter(
    shares: Bool = true, key: String? = nil, serializer: ImageResponseSerializer = ImageResponseSerializer(),
    filter: (any ImageFilter)? = nil
  ) -> ImageWaiter {
    ImageWaiter(
      request: request, sharesImages: shares, cacheKey: key, serializer: serializer, filter: filter,
      progress: nil,
      progressQueue: .global(), completionQueue: .global(), completion: nil)
  }

  @Test("A response has what the request got, and the image")
  func parts() throws {
    let response = try response(file)
    var delivery = ImageDelivery(response, cache: nil)
    let start = ContinuousClock.now
    let answer = delivery.response(for: waiter())
    let elapsed = start.duration(to: .now) / .seconds(1)
    #expect(answer.request == adapted)
    #expect(answer.response === response.response)
    #expect(answer.data == file)
    #expect(answer.metrics == nil)
    #expect(answer.serializationDuration > 0 && answer.serializationDuration <= elapsed, "in seconds")
    #expect(try answer.result.get() == Drawing(gradientOf: 9, 7).image())
  }

  @Test("An image is stored by its key, or by the request of the caller and the filter, or not at all")
  func storing() throws {
    let filter = CircleFilter()
    let plain = try Drawing(gradientOf: 9, 7).image()
    let circle = try plain.roundedIntoCircle()
    let cases: [(ImageWaiter, [Image?])] = [
      (waiter(), [plain, nil, nil]), (waiter(filter: filter), [nil, circle, nil]),
      (waiter(key: "key"), [nil, nil, plain]), (waiter(key: "key", filter: filter), [nil, nil, circle]),
      (waiter(shares: false), [nil, nil, nil]), (waiter(shares: false, filter: filter), [nil, nil, nil]),
      (waiter(shares: false, key: "key"), [nil, nil, plain]),
    ]
    for (index, (waiter, expected)) in cases.enumerated() {
      cache.removeAllImages()
      var delivery = ImageDelivery(try response(file), cache: cache)
      _ = delivery.response(for: waiter)
      let found = [
        cache.image(for: request), cache.image(for: request, withIdentifier: filter.identifier),
        cache.image(withIdentifier: "key"),
      ]
      #expect(found == expected, "case \(index)")
      #expect(cache.image(for: adapted) == nil)
      #expect((cache.memoryUsage > 0) == expected.contains { $0 != nil }, "case \(index)")
    }
  }

  @Test("Neither a failure nor the image of an empty body is stored")
  func notStored() throws {
    let responses = try [
      response(Data("hello".utf8)), response(file, error: .sessionDeinitialized),
      response(file, type: "text/html"),
      response(Data(), status: 204), response(nil, status: 204), response(Data()),
    ]
    for (index, response) in responses.enumerated() {
      var delivery = ImageDelivery(response, cache: cache)
      let answer = delivery.response(for: waiter(key: "key"))
      _ = delivery.response(for: waiter())
      #expect(cache.memoryUsage == 0, "response \(index)")
      #expect(
        (try? answer.result.get().pixelWidth) == (index == 3 || index == 4 ? 1 : nil), "response \(index)")
    }
  }

  @Test("The error of the request counts more than its body")
  func failure() throws {
    for (error, isCancelled) in [(AFError.sessionDeinitialized, false), (.explicitlyCancelled, true)] {
      var delivery = ImageDelivery(try response(file, error: error), cache: cache)
      for waiter in [waiter(), waiter(filter: CircleFilter())] {
        let result = delivery.response(for: waiter).result
        guard case .failure(let failure) = result else {
          Issue.record("\(result)")
          continue
        }
        #expect(failure.isRequestCancelledError == isCancelled)
        #expect(failure.isAlamofireError == !isCancelled)
      }
    }
  }

  @Test("Each serializer makes one image, and each filter with it one result")
  func once() throws {
    final class Counting: ImageResponseSerializer, @unchecked Sendable {
      let count = Mutex(0)
      override func serialize(
        request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?
      ) throws -> Image {
        count.withLock { $0 += 1 }
        return try super.serialize(request: request, response: response, data: data, error: error)
      }
    }
    let (first, second) = (Counting(imageScale: 2), Counting(imageScale: 3))
    let applied = Mutex<[String]>([])
    func filter(_ name: String) -> any ImageFilter {
      DynamicImageFilter(name) { image in
        applied.withLock { $0.append("\(name) at \(image.scale)") }
        return image.af.imageRoundedIntoCircle()
      }
    }
    var delivery = ImageDelivery(try response(file), cache: nil)
    for _ in 0..<3 {
      for serializer in [first, second] {
        for filter in [nil, filter("a"), filter("b")] {
          let image = try delivery.response(for: waiter(serializer: serializer, filter: filter)).result.get()
          #expect(image.scale == serializer.imageScale)
          #expect(image.pixelWidth == (filter == nil ? 9 : 7))
        }
      }
    }
    #expect((first.count.withLock { $0 }, second.count.withLock { $0 }) == (1, 1))
    #expect(applied.withLock { $0 } == ["a at 2.0", "b at 2.0", "a at 3.0", "b at 3.0"])
  }

  @Test("The serializer of the module leaves decoding to the filter, and a subclass does as it likes")
  func decoding() throws {
    final class Own: ImageResponseSerializer, @unchecked Sendable {}
    for (serializer, isDecoded) in [
      (ImageResponseSerializer(), false), (ImageResponseSerializer(inflateResponseImage: false), false),
      (Own(), true), (Own(inflateResponseImage: false), false),
    ] {
      let decoded = Mutex<Bool?>(nil)
      let filter = DynamicImageFilter("note") { image in
        decoded.withLock { $0 = image.af.isInflated }
        return image
      }
      var delivery = ImageDelivery(try response(file), cache: nil)
      _ = delivery.response(for: waiter(serializer: serializer, filter: filter))
      #expect(decoded.withLock { $0 } == isDecoded)
      let image = try delivery.response(for: waiter(serializer: serializer)).result.get()
      #expect(image.af.isInflated == serializer.inflateResponseImage)
    }
  }

  @Test("A damaged image is an error, also if the filter returns what it cannot change")
  func damage() throws {
    let whole = try Drawing(gradientOf: 200, 200).file(.png)
    let half = whole.prefix(whole.count / 2)
    let filters: [any ImageFilter] = [
      DynamicImageFilter("half") { $0.af.imageScaled(to: CGSize(width: 100, height: 100)) },
      DynamicImageFilter("same") { $0 }, DynamicCompositeImageFilter(), BlurFilter(blurRadius: 0),
    ]
    for filter in filters {
      var delivery = ImageDelivery(try response(whole), cache: nil)
      let image = try delivery.response(for: waiter(filter: filter)).result.get()
      #expect(image.content.isDecoded, "\(filter.identifier)")
      var damaged = ImageDelivery(try response(half), cache: cache)
      for waiter in [waiter(filter: filter), waiter(key: "key", filter: filter)] {
        let result = damaged.response(for: waiter).result
        guard case .failure(.imageSerializationFailed(.damaged)) = result else {
          Issue.record("\(filter.identifier): \(result)")
          continue
        }
      }
    }
    #expect(cache.memoryUsage == 0)
    let lazy = ImageResponseSerializer(inflateResponseImage: false)
    var delivery = ImageDelivery(try response(half), cache: nil)
    for filter in filters {
      let image = try delivery.response(for: waiter(serializer: lazy, filter: filter)).result.get()
      #expect(image.pixelWidth == 200 && !image.content.isDecoded, "\(filter.identifier)")
    }
  }

  @Test("A filter that fails is not replaced by the image, and has the time of the image, not of other work")
  func filters() async throws {
    struct Failing: ImageFilter {
      var filter: @Sendable (Image) -> Image { { $0 } }
      func apply(_ image: Image) throws -> Image { throw ImageError.invalidPixels }
    }
    var delivery = ImageDelivery(try response(file), cache: cache)
    let result = delivery.response(for: waiter(filter: Failing())).result
    guard case .failure(.imageSerializationFailed(.invalidPixels)) = result else {
      Issue.record("\(result)")
      return
    }
    #expect(cache.memoryUsage == 0)
    let response = try response(file)
    let waiter = waiter(
      filter: DynamicImageFilter("work") { image in
        #expect(ImageWork.current == nil)
        return image
      })
    let image = try await ImageQueue(width: 1).run(limit: .seconds(20)) {
      var delivery = ImageDelivery(response, cache: nil)
      return try delivery.response(for: waiter).result.get()
    }
    #expect(image.pixelWidth == 9)
  }
}
