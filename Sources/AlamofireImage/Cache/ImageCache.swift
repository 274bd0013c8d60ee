public import FoundationNetworking

/// A cache of images by name. Its functions may be called from any thread.
public protocol ImageCache: Sendable {
  /// Stores an image, in place of one with the same name.
  func add(_ image: Image, withIdentifier identifier: String)
  /// Removes an image. Returns whether there was one.
  @discardableResult
  func removeImage(withIdentifier identifier: String) -> Bool
  /// Removes all images. Returns whether there were some.
  @discardableResult
  func removeAllImages() -> Bool
  /// Returns an image, or `nil`.
  func image(withIdentifier identifier: String) -> Image?
}

/// A cache of images by request and filter.
public protocol ImageRequestCache: ImageCache {
  /// Stores the image of a request, in place of the one with the same identifier.
  func add(_ image: Image, for request: URLRequest, withIdentifier identifier: String?)
  /// Removes the image of a request. Returns whether there was one.
  @discardableResult
  func removeImage(for request: URLRequest, withIdentifier identifier: String?) -> Bool
  /// Returns the image of a request, or `nil`.
  func image(for request: URLRequest, withIdentifier identifier: String?) -> Image?
}
