public import Alamofire
public import Foundation
public import FoundationNetworking

/// A serializer that makes an image from the body of a response.
///
/// The content type of the response must be one of the accepted ones, unless the URL is a `file:` URL.
///
/// ```swift
/// AF.request(url).response(responseSerializer: ImageResponseSerializer()) { response in
///   print(response.result)
/// }
/// ```
open class ImageResponseSerializer: ResponseSerializer, @unchecked Sendable {
  // `@unchecked` because a class that is open cannot be proved to be Sendable; all its properties are
  // constants. Subclasses must protect their own.

  /// The pixels per point of a screen, which is 1.
  open class var deviceScreenScale: CGFloat { 1 }

  /// The accepted content types. Files of some of them cannot be decoded; see ``ImageFormat``.
  ///
  /// Add some with ``addAcceptableImageContentTypes(_:)``.
  public static var acceptableImageContentTypes: Set<String> { types.withLock { $0 } }

  // A lock, because types can be added on any thread.
  private static let types = Mutex<Set<String>>([
    "application/octet-stream", "image/avif", "image/bmp", "image/gif", "image/heic", "image/heif",
    "image/ico",
    "image/jp2", "image/jpeg", "image/jpg", "image/jxl", "image/png", "image/tiff", "image/webp",
    "image/x-bmp",
    "image/x-icon", "image/x-ms-bmp", "image/x-win-bitmap", "image/x-xbitmap",
  ])

  /// Accepts more content types, in the whole process.
  ///
  /// - Parameter contentTypes: Media types in lower case, without parameters.
  public class func addAcceptableImageContentTypes(_ contentTypes: Set<String>) {
    types.withLock { $0.formUnion(contentTypes) }
  }

  /// The pixels per point of the images.
  public let imageScale: CGFloat
  /// Whether the pixels are decoded by the serializer, which then fails if the file is truncated.
  public let inflateResponseImage: Bool
  /// The limits of the images.
  public let limits: ImageLimits
  /// The status codes for which an empty body is allowed.
  public let emptyResponseCodes: Set<Int>
  /// The methods for which an empty body is allowed.
  public let emptyRequestMethods: Set<HTTPMethod>

  /// Makes the serializer.
  ///
  /// - Parameters:
  ///   - imageScale: The pixels per point of the images. Default: `DataRequest.imageScale`.
  ///   - inflateResponseImage: Whether the pixels are decoded at once. Default: `true`.
  ///   - limits: What an image may cost.
  ///   - emptyResponseCodes: Default: 204 and 205. An image of one transparent pixel stands for an empty body.
  ///   - emptyRequestMethods: Default: `HEAD`.
  public init(
    imageScale: CGFloat = DataRequest.imageScale, inflateResponseImage: Bool = true,
    limits: ImageLimits = .default,
    emptyResponseCodes: Set<Int> = ImageResponseSerializer.defaultEmptyResponseCodes,
    emptyRequestMethods: Set<HTTPMethod> = ImageResponseSerializer.defaultEmptyRequestMethods
  ) {
    self.imageScale = imageScale
    self.inflateResponseImage = inflateResponseImage
    self.limits = limits
    self.emptyResponseCodes = emptyResponseCodes
    self.emptyRequestMethods = emptyRequestMethods
  }

  /// Makes the image.
  ///
  /// - Throws: `error` unchanged, if there is one; `.inputDataNilOrZeroLength` for an empty body that is not allowed;
  ///   `AFError.responseValidationFailed` for another content type; ``AFIError/imageSerializationFailed(_:)``.
  open func serialize(
    request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?
  ) throws -> Image {
    let image = try makeImage(request: request, response: response, data: data, error: error)
    if inflateResponseImage { try image.inflateOrFail() }
    return image
  }

  /// Makes the image without decoding its pixels.
  func makeImage(
    request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?
  ) throws -> Image {
    if let error { throw error }
    guard let data, !data.isEmpty else {
      guard emptyResponseAllowed(forRequest: request, response: response) else {
        throw AFError.responseSerializationFailed(reason: .inputDataNilOrZeroLength)
      }
      return try Image.make { () throws(ImageError) in
        try Image(pixels: Data(count: 4), width: 1, height: 1, format: .rgba, scale: imageScale)
      }
    }
    try Self.validateContentType(request: request, response: response)
    return try Image.make { () throws(ImageError) in try Image(data: data, scale: imageScale, limits: limits)
    }
  }

  /// Throws if the content type is not accepted.
  private class func validateContentType(request: URLRequest?, response: HTTPURLResponse?) throws {
    if let url = request?.url, url.isFileURL { return }
    let accepted = acceptableImageContentTypes
    guard let type = response?.mimeType?.lowercased() else {
      throw AFError.responseValidationFailed(
        reason: .missingContentType(acceptableContentTypes: accepted.sorted()))
    }
    guard accepted.contains(type) else {
      throw AFError.responseValidationFailed(
        reason: .unacceptableContentType(acceptableContentTypes: accepted.sorted(), responseContentType: type)
      )
    }
  }
}

extension Image {
  /// Turns an error of an image into an error of a serializer.
  fileprivate static func make(_ body: () throws(ImageError) -> Image) throws -> Image {
    do { return try body() } catch { throw AFIError.imageSerializationFailed(error) }
  }

  /// Decodes the pixels.
  fileprivate func inflateOrFail() throws {
    do { _ = try content.decoded() } catch { throw AFIError.imageSerializationFailed(error) }
  }
}

// A lock, because the property is one of the class, and may be set on any thread.
private let imageScale = Mutex<CGFloat>(1)

extension DataRequest {
  /// The pixels per point of images whose scale is not given, in the whole process. Default: 1, which also stands for
  /// values that are not positive.
  public class var imageScale: CGFloat {
    get { AlamofireImage.imageScale.withLock { $0 } }
    set { AlamofireImage.imageScale.withLock { $0 = newValue > 0 ? newValue : 1 } }
  }

  /// Adds a handler that gets the body as an image.
  ///
  /// - Parameters:
  ///   - imageScale: The pixels per point. Default: `imageScale`.
  ///   - inflateResponseImage: Whether the pixels are decoded before the handler is called, where serializers run:
  ///     on the session's `serializationQueue`, or else on Swift's pool. Pass `false`, and call `inflated()` later, to
  ///     decode many images on threads for images. Then damage behind the head is found later. Default: `true`.
  ///   - limits: What the image may cost.
  ///   - queue: The queue of the handler. Default: the main queue.
  ///   - completionHandler: Called once. An error of the image is an ``AFIError`` in
  ///     `AFError.responseSerializationFailed`.
  @preconcurrency
  @discardableResult
  public func responseImage(
    imageScale: CGFloat = DataRequest.imageScale, inflateResponseImage: Bool = true,
    limits: ImageLimits = .default,
    queue: DispatchQueue = .main, completionHandler: @escaping @Sendable (AFDataResponse<Image>) -> Void
  ) -> Self {
    response(
      queue: queue,
      responseSerializer: ImageResponseSerializer(
        imageScale: imageScale, inflateResponseImage: inflateResponseImage, limits: limits),
      completionHandler: completionHandler)
  }

  /// Makes a task that awaits the body as an image.
  ///
  /// ```swift
  /// let image = try await AF.request(url).serializingImage().value
  /// print(image.size)
  /// ```
  ///
  /// - Parameters:
  ///   - automaticallyCancelling: Whether the request is cancelled with the task that awaits it. Default: `true`.
  ///   - imageScale: The pixels per point. Default: `imageScale`.
  ///   - inflateResponseImage: Whether the pixels are decoded before. Default: `true`.
  ///   - limits: What the image may cost.
  ///   - emptyResponseCodes: Default: 204 and 205.
  ///   - emptyRequestMethods: Default: `HEAD`.
  public func serializingImage(
    automaticallyCancelling: Bool = true, imageScale: CGFloat = DataRequest.imageScale,
    inflateResponseImage: Bool = true, limits: ImageLimits = .default,
    emptyResponseCodes: Set<Int> = ImageResponseSerializer.defaultEmptyResponseCodes,
    emptyRequestMethods: Set<HTTPMethod> = ImageResponseSerializer.defaultEmptyRequestMethods
  ) -> DataTask<Image> {
    serializingResponse(
      using: ImageResponseSerializer(
        imageScale: imageScale, inflateResponseImage: inflateResponseImage, limits: limits,
        emptyResponseCodes: emptyResponseCodes, emptyRequestMethods: emptyRequestMethods),
      automaticallyCancelling: automaticallyCancelling)
  }
}

/// The error of a download of an image.
public enum AFIError: Error, Sendable {
  /// The download was cancelled.
  case requestCancelled
  /// The response cannot be decoded as an image. The associated value says why.
  case imageSerializationFailed(ImageError)
  /// The request failed.
  case alamofireError(AFError)

  /// Wraps an error of a request, or returns the ``AFIError`` in it.
  init(_ error: AFError) {
    switch error {
    case .explicitlyCancelled: self = .requestCancelled
    case .responseSerializationFailed(reason: .customSerializationFailed(error: let cause as AFIError)):
      self = cause
    default: self = .alamofireError(error)
    }
  }
}

extension AFIError {
  /// Whether the download was cancelled.
  public var isRequestCancelledError: Bool { if case .requestCancelled = self { true } else { false } }
  /// Whether the response could not be decoded.
  public var isImageSerializationFailedError: Bool {
    if case .imageSerializationFailed = self { true } else { false }
  }
  /// Whether the request failed.
  public var isAlamofireError: Bool { if case .alamofireError = self { true } else { false } }
}

extension AFIError: NSErrorConvertible {}
extension ImageError: NSErrorConvertible {}

extension AFIError: CustomStringConvertible, LocalizedError {
  /// The text of ``description``.
  public var errorDescription: String? { description }

  /// The reason of the failure.
  public var description: String {
    switch self {
    case .requestCancelled: "The request for the image was cancelled."
    case .imageSerializationFailed(let cause): "The response cannot be decoded as an image. \(cause)"
    case .alamofireError(let error): String(describing: error)
    }
  }
}

/// The response of a download of an image.
public typealias AFIDataResponse<Value> = DataResponse<Value, AFIError>
/// The result of a download of an image.
public typealias AFIResult<Value> = Result<Value, AFIError>
