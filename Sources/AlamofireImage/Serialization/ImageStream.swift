public import Alamofire
public import Foundation
import FoundationNetworking

extension DataStreamRequest {
  /// Returns the images of a response of the type `multipart/x-mixed-replace`, as cameras send them, while they arrive.
  /// Another response is one image.
  ///
  /// ```swift
  /// for try await image in AF.streamRequest(url).validate().streamImages() {
  ///   print(image.size)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - imageScale: The pixels per point of the images. Default: `DataRequest.imageScale`.
  ///   - inflateResponseImage: Whether the pixels are decoded, on a thread for images. Default: `true`.
  ///   - limits: What an image may cost. They also limit the bytes of a part.
  public func streamImages(
    imageScale: CGFloat = DataRequest.imageScale, inflateResponseImage: Bool = true,
    limits: ImageLimits = .default
  ) -> ImageStream {
    ImageStream(request: self, scale: imageScale, inflates: inflateResponseImage, limits: limits)
  }
}

/// The images of a `DataStreamRequest`, for `for try await`.
///
/// While an image is decoded, the server waits. The loop ends with an error if a part cannot be decoded or is too
/// large, or if the request fails. Read it once, in one loop.
public struct ImageStream: AsyncSequence, Sendable {
  /// An image.
  public typealias Element = Image

  let request: DataStreamRequest
  let scale: CGFloat
  let inflates: Bool
  let limits: ImageLimits

  /// Makes the iterator, and starts the request.
  public func makeAsyncIterator() -> Iterator { Iterator(self) }

  /// The iterator of the images.
  public struct Iterator: AsyncIteratorProtocol {
    private let stream: ImageStream
    private var chunks: StreamValues<Data>.AsyncIterator
    private var parts: MixedParts?
    /// The bytes of a body that is not multipart.
    private var body = Data()
    private var ready: [Data] = []
    private var hasHead = false
    private var isOver = false

    init(_ stream: ImageStream) {
      self.stream = stream
      chunks = stream.request.chunks().makeAsyncIterator()
    }

    /// Returns the next image, or `nil` at the end.
    ///
    /// - Throws: ``ImageError``, or the error of the request.
    public mutating func next() async throws -> Image? {
      while ready.isEmpty, !isOver {
        if let chunk = try await chunks.next() {
          try take(chunk)
        } else {
          isOver = true
          if parts == nil, !body.isEmpty { ready = [body] }
        }
      }
      guard !ready.isEmpty else { return nil }
      let data = ready.removeFirst()
      let image = try Image(data: data, scale: stream.scale, limits: stream.limits)
      return stream.inflates ? try await image.inflated() : image
    }

    private mutating func take(_ chunk: Data) throws {
      if !hasHead {
        hasHead = true
        let type = stream.request.response?.value(forHTTPHeaderField: "Content-Type") ?? ""
        parts = MixedParts(contentType: type, limit: stream.limits.bytes)
      }
      if parts != nil {
        ready += try parts?.append(chunk) ?? []
      } else {
        body.append(chunk)
        try stream.limits.check(.bytes, body.count, limit: stream.limits.bytes)
      }
    }
  }
}
