public import Alamofire
public import Foundation

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
