public import Foundation
import FoundationNetworking

/// An error that `as? NSError` and `catch let error as NSError` turn into an `NSError`, as on Apple's systems.
///
/// On Linux these casts fail for other Swift errors; `error as NSError` works for all of them. The errors of this
/// library conform, and so does `URLError`. Your own error only needs to declare the conformance:
///
/// ```swift
/// enum UploadError: NSErrorConvertible {
///   case quotaExceeded
///
///   var errorDescription: String? { "The quota is exceeded. Remove files, or ask for more space." }
/// }
/// ```
///
/// The `NSError` has the domain, code and user info of `error as NSError`. The conversion gives the name of the type,
/// the position of the case and the localized description, unless the error is a `CustomNSError`. An `NSError` from
/// such a cast is cast back to the error; one that `error as NSError` created from an `any Error` is not.
public protocol NSErrorConvertible: LocalizedError, _ObjectiveCBridgeable where _ObjectiveCType == NSError {}

extension NSErrorConvertible {
  /// Returns the error as an `NSError`.
  public func _bridgeToObjectiveC() -> NSError { ConvertedError(self) }

  /// Returns the error that `source` was created from.
  public static func _forceBridgeFromObjectiveC(_ source: NSError, result: inout Self?) {
    _ = _conditionallyBridgeFromObjectiveC(source, result: &result)
  }

  /// Returns whether `source` was created from an error of this type, and that error.
  @discardableResult
  public static func _conditionallyBridgeFromObjectiveC(_ source: NSError, result: inout Self?) -> Bool {
    result = (source as? ConvertedError)?.original as? Self
    return result != nil
  }

  /// Returns the error that `source` was created from; a programmer's error for any other `source`.
  public static func _unconditionallyBridgeFromObjectiveC(_ source: NSError?) -> Self {
    var result: Self?
    if let source { _ = _conditionallyBridgeFromObjectiveC(source, result: &result) }
    guard let result else {
      preconditionFailure("\(String(describing: source)) was not made of a \(Self.self)")
    }
    return result
  }
}

/// An `NSError` that knows the error it was created from.
private final class ConvertedError: NSError, @unchecked Sendable {
  // Unchecked, as its superclass is: its own properties are constants.

  let original: any Error

  init(_ error: any Error) {
    original = error
    // The domain, code and user info that Foundation gives to Swift errors.
    let plain = error as NSError
    super.init(domain: plain.domain, code: plain.code, userInfo: plain.userInfo)
  }

  required init?(coder: NSCoder) { nil }

  // Foundation's own never end for subclasses.
  override var hash: Int {
    var hasher = Hasher()
    hasher.combine(domain)
    hasher.combine(code)
    return hasher.finalize()
  }

  override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? NSError else { return false }
    return self === other
      || (domain == other.domain && code == other.code
        && NSDictionary(dictionary: userInfo) == NSDictionary(dictionary: other.userInfo))
  }

  /// An archive holds what every `NSError` holds.
  override var classForCoder: AnyClass { NSError.self }
}

extension AFError: NSErrorConvertible {}
extension AFError.UnexpectedInputStreamLength: NSErrorConvertible {}
extension AFError.MultipartFormFailure: NSErrorConvertible {}
extension ClientIdentity.Failure: NSErrorConvertible {}

/// Foundation has the same conformance for `CocoaError`, and none for this type.
extension URLError: @retroactive _ObjectiveCBridgeable {
  /// Returns the error as an `NSError` of the domain `NSURLErrorDomain`.
  public func _bridgeToObjectiveC() -> NSError {
    NSError(domain: NSURLErrorDomain, code: errorCode, userInfo: errorUserInfo)
  }

  /// Returns `source` as an error of URLs, if its domain is `NSURLErrorDomain`.
  public static func _forceBridgeFromObjectiveC(_ source: NSError, result: inout URLError?) {
    _ = _conditionallyBridgeFromObjectiveC(source, result: &result)
  }

  /// Returns whether the domain of `source` is `NSURLErrorDomain`, and `source` as an error of URLs.
  @discardableResult
  public static func _conditionallyBridgeFromObjectiveC(_ source: NSError, result: inout URLError?) -> Bool {
    guard source.domain == NSURLErrorDomain else { return false }
    result = URLError(_nsError: source)
    return true
  }

  /// Returns `source` as an error of URLs; a programmer's error for another domain.
  public static func _unconditionallyBridgeFromObjectiveC(_ source: NSError?) -> URLError {
    var result: URLError?
    if let source { _ = _conditionallyBridgeFromObjectiveC(source, result: &result) }
    return result ?? URLError(.unknown)
  }
}
